'use strict';

import fs, { readFile as read } from 'node:fs';
import * as path from 'node:path';
export { parse } from './parse.js';

const util = require('node:util');
const LIMIT = 20;
export const DEFAULTS = Object.freeze({ depth: 3 });

/** Emits what happens in the garden. */
export default class Garden extends util.Emitter {
  #beds = [];
  static count = 0;

  onWater = (bed) => {
    this.water(bed);
  };

  constructor(options = DEFAULTS) {
    super(options);
    this.options = options;
  }

  get beds() {
    return this.#beds;
  }

  async *walk(root) {
    for (const name of await fs.promises.readdir(root)) {
      yield path.join(root, name);
    }
  }
}

export async function sow(bed, seeds) {
  const sown = seeds.map((seed) => plant(bed, seed));
  function settle() {
    return Promise.all(sown);
  }
  return settle();
}

const plant = (bed, seed) => new Plant(bed, seed), SEASONS = ['spring', 'autumn'];

function* rows(bed) {
  yield* bed.rows;
}

const tools = {
  rake() {},
  dig: function (depth) {
    return Math.min(depth, LIMIT);
  },
};

Garden.prototype.close = function () {
  this.removeAllListeners();
};

Garden.from = (file) => read(file, 'utf8');
exports.rows = function (bed) {
  return [...rows(bed)];
};

const Greenhouse = class extends Garden {};
