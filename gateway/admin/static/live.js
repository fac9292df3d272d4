// What the gateway sends by itself, each second, and what it was before.

const KEPT = 300;
const LATE_MS = 4_000; // without a word from the gateway, then it is said to be away
const WAITS_MS = [2_000, 60_000]; // before a stream is asked for again that was refused, at first and at most

class Live extends EventTarget {
  samples = [];
  isConnected = false;
  #source = null;
  #missing;
  #retry;
  #waitMs = WAITS_MS[0];
  #streams = 0;

  start() {
    this.#source = new EventSource("api/lmq/live");
    this.#source.addEventListener("history", (event) => this.#take(JSON.parse(event.data), true));
    this.#source.addEventListener("sample", (event) => this.#take([JSON.parse(event.data)], false));
    this.#source.onerror = () => {
      this.#missing ??= setTimeout(() => this.#tell(false), LATE_MS); // it mostly comes again
      if (this.#source.readyState === EventSource.CLOSED) this.#comeAgain();
    };
  }

  // A browser does not ask again by itself where something else was answered than a stream: by a proxy whose gateway is
  // away, or by a gateway that has too many streams.
  #comeAgain() {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.start(), this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, WAITS_MS[1]);
  }

  // Begin anew: who looks logged in meanwhile, and may be told more or less.
  restart() {
    this.#source.close();
    clearTimeout(this.#retry);
    this.samples = [];
    this.start();
  }

  #take(samples, isAll) {
    clearTimeout(this.#missing);
    this.#missing = undefined;
    this.#waitMs = WAITS_MS[0];
    if (isAll) this.#streams += 1; // perhaps of a gateway that was started anew and counts from zero
    this.samples = (isAll ? samples : [...this.samples, ...samples]).slice(-KEPT);
    this.#tell(true);
  }

  #tell(isConnected) {
    this.isConnected = isConnected;
    this.dispatchEvent(new Event("change"));
  }

  // Call `then` at each change until `signal` is aborted.
  follow(then, signal) {
    this.addEventListener("change", then, { signal });
  }

  get last() {
    return this.samples.at(-1);
  }

  // Says something else once one of the lists that seldom change did; undefined: that is not known yet.
  mark(list) {
    const number = this.last?.lists?.[list];
    return number === undefined ? undefined : `${this.#streams} ${number}`;
  }

  // How fast a counter went up: one figure a second for each pair of samples.
  rates(read) {
    const found = [];
    for (let i = 1; i < this.samples.length; i++) {
      const [before, after] = [this.samples[i - 1], this.samples[i]];
      const seconds = (after.at_ms - before.at_ms) / 1_000;
      found.push(seconds > 0 ? Math.max(0, read(after) - read(before)) / seconds : 0);
    }
    return found;
  }

  values(read) {
    return this.samples.map(read);
  }
}

export const live = new Live();
