/* Small charts of the last values, oldest first. */
import { svg } from './dom.js';

const WIDTH = 200, HEIGHT = 60;

/* Makes a chart for `length` values, with the area below the line unless it is small. Its
 * update(values, about) draws them; about describes it for those who do not see it. */
export function chart(length, small = false) {
  const area = svg('path', { class: 'area' }), line = svg('path', { class: 'lines' });
  const element = svg('svg', { class: small ? 'chart spark' : 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' },
    area, svg('line', { class: 'base', x1: '0', x2: String(WIDTH), y1: String(HEIGHT), y2: String(HEIGHT) }), line);

  return { element, update(values, about) {
    const most = Math.max(...values, 1e-9);
    const points = values.map((value, i) => `${((length - values.length + i) / (length - 1) * WIDTH).toFixed(1)} ${(HEIGHT - 1 - (HEIGHT - 4) * value / most).toFixed(1)}`);
    const path = points.length > 1 ? `M${points.join('L')}` : '';
    const first = (length - values.length) / (length - 1) * WIDTH;
    line.setAttribute('d', path);
    area.setAttribute('d', path ? `${path}L${WIDTH} ${HEIGHT}L${first.toFixed(1)} ${HEIGHT}Z` : '');
    element.setAttribute('aria-label', about);
  } };
}
