// A force-directed layout: repulsion by Barnes and Hut, springs along the edges, a pull to the middle.
// Numbers only; it knows nothing of the page.

const THETA2 = 0.81;
const REPULSION = 3500;
const SPRING = 70;
const PULL = 0.025;
const DRAG = 0.6;
const CALM = 0.002;

export class Layout {
  constructor() {
    this.count = 0;
    this.x = new Float64Array(0);
    this.y = new Float64Array(0);
    this.edges = [];
    this.alpha = 1;
    this.held = -1;
  }

  // Keeps the places of the first nodes; `near(n)` says beside which node a new one begins.
  resize(count, edges, near = () => -1) {
    const [x, y] = [new Float64Array(count), new Float64Array(count)];
    x.set(this.x.subarray(0, Math.min(count, this.count)));
    y.set(this.y.subarray(0, Math.min(count, this.count)));
    for (let n = this.count; n < count; n += 1) {
      const beside = near(n);
      const angle = n * 2.399963;
      const far = beside >= 0 ? 40 : 14 * Math.sqrt(n + 0.5);
      x[n] = (beside >= 0 ? x[beside] : 0) + far * Math.cos(angle);
      y[n] = (beside >= 0 ? y[beside] : 0) + far * Math.sin(angle);
    }
    Object.assign(this, { count, x, y, edges, vx: new Float64Array(count), vy: new Float64Array(count), alpha: 1 });
    this.degree = new Float64Array(count);
    for (const [a, b] of edges) {
      this.degree[a] += 1;
      this.degree[b] += 1;
    }
    // A quadtree in flat arrays; 4 n + some cells are enough for points that differ.
    const cells = 8 * count + 64;
    this.child = new Int32Array(4 * cells);
    this.mass = new Float64Array(cells);
    this.cx = new Float64Array(cells);
    this.cy = new Float64Array(cells);
    this.stack = new Int32Array(512);
    this.sizes = new Float64Array(512);
  }

  get calm() {
    return this.alpha < CALM;
  }

  warm(alpha = 0.3) {
    this.alpha = Math.max(this.alpha, alpha);
  }

  tick() {
    const { count, x, y, vx, vy, alpha } = this;
    if (!count) return;
    this.plant();
    for (let n = 0; n < count; n += 1) this.repel(n, alpha);
    for (const [a, b] of this.edges) {
      const [dx, dy] = [x[b] - x[a], y[b] - y[a]];
      const distance = Math.sqrt(dx * dx + dy * dy) || 1;
      const strength = (alpha * 0.7 * (distance - SPRING)) / distance / Math.min(this.degree[a], this.degree[b], 8);
      const share = this.degree[a] / (this.degree[a] + this.degree[b]);
      vx[b] -= dx * strength * share;
      vy[b] -= dy * strength * share;
      vx[a] += dx * strength * (1 - share);
      vy[a] += dy * strength * (1 - share);
    }
    for (let n = 0; n < count; n += 1) {
      if (n === this.held) { vx[n] = vy[n] = 0; continue; }
      vx[n] = (vx[n] - x[n] * PULL * alpha) * DRAG;
      vy[n] = (vy[n] - y[n] * PULL * alpha) * DRAG;
      x[n] += vx[n];
      y[n] += vy[n];
    }
    this.alpha *= 0.977;
  }

  plant() {
    const { count, x, y, child, mass, cx, cy } = this;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let n = 0; n < count; n += 1) {
      left = Math.min(left, x[n]); right = Math.max(right, x[n]);
      top = Math.min(top, y[n]); bottom = Math.max(bottom, y[n]);
    }
    this.size = Math.max(right - left, bottom - top, 1) * 1.001;
    [this.left, this.top] = [left, top];
    child.fill(0, 0, 4);
    this.used = 1;
    mass[0] = 0;
    for (let n = 0; n < count; n += 1) this.insert(n);
    // Masses and centres, from the leaves up: children always come after their parent.
    for (let cell = this.used - 1; cell >= 0; cell -= 1) {
      let [m, sx, sy] = [0, 0, 0];
      for (let q = 4 * cell; q < 4 * cell + 4; q += 1) {
        const inside = child[q];
        if (inside > 0) { m += mass[inside]; sx += cx[inside] * mass[inside]; sy += cy[inside] * mass[inside]; }
        else if (inside < 0) { m += 1; sx += x[-inside - 1]; sy += y[-inside - 1]; }
      }
      mass[cell] = m;
      cx[cell] = m ? sx / m : 0;
      cy[cell] = m ? sy / m : 0;
    }
  }

  // A slot holds 0 for nothing, a cell, or -(n + 1) for a node. Nodes in one place are moved apart a little.
  insert(n) {
    const { x, y, child } = this;
    let [cell, left, top, size] = [0, this.left, this.top, this.size];
    for (let depth = 0; depth < 40; depth += 1) {
      size /= 2;
      const east = x[n] >= left + size ? 1 : 0;
      const south = y[n] >= top + size ? 1 : 0;
      left += east * size;
      top += south * size;
      const slot = 4 * cell + east + 2 * south;
      const inside = child[slot];
      if (inside === 0) { child[slot] = -(n + 1); return; }
      if (inside > 0) { cell = inside; continue; }
      if (this.used >= this.mass.length) return;
      const other = -inside - 1;
      if (Math.abs(x[other] - x[n]) + Math.abs(y[other] - y[n]) < 1e-3) { x[n] += 0.5 + (n % 7) * 0.1; y[n] += 0.3; return; }
      const fresh = this.used;
      this.used += 1;
      child.fill(0, 4 * fresh, 4 * fresh + 4);
      child[slot] = fresh;
      const half = size / 2;
      child[4 * fresh + (x[other] >= left + half ? 1 : 0) + (y[other] >= top + half ? 2 : 0)] = inside;
      cell = fresh;
    }
  }

  repel(n, alpha) {
    const { x, y, child, mass, cx, cy, stack, sizes } = this;
    let [fx, fy, at] = [0, 0, 1];
    stack[0] = 0;
    sizes[0] = this.size;
    while (at) {
      at -= 1;
      const cell = stack[at];
      const size = sizes[at];
      const [dx, dy] = [x[n] - cx[cell], y[n] - cy[cell]];
      const far = dx * dx + dy * dy;
      if (size * size < THETA2 * far) {
        const force = (mass[cell] * REPULSION) / (far + 30);
        fx += dx * force / Math.sqrt(far);
        fy += dy * force / Math.sqrt(far);
        continue;
      }
      for (let q = 4 * cell; q < 4 * cell + 4; q += 1) {
        const inside = child[q];
        if (inside > 0 && at < 508) { stack[at] = inside; sizes[at] = size / 2; at += 1; }
        else if (inside < 0 && -inside - 1 !== n) {
          const other = -inside - 1;
          const [ox, oy] = [x[n] - x[other], y[n] - y[other]];
          const near = ox * ox + oy * oy || 1;
          const force = REPULSION / (near + 30) / Math.sqrt(near);
          fx += ox * force;
          fy += oy * force;
        }
      }
    }
    this.vx[n] += fx * alpha;
    this.vy[n] += fy * alpha;
  }
}
