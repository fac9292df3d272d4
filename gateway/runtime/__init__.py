"""What runs the product: the loop's clock, timer and turns, work in steps, and the threads beside the loop."""
