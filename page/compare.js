/* The stage: the image before and after with a divider, zoom to pixels, and drawings on it. A point
 * of the image is at offset + scale * point of the stage, in CSS pixels. */
import { h, find } from './dom.js';
import { drawMask, paintTool, resizeBrush } from './mask.js';
import { drawShapes, shapeTool } from './regions.js';
import { outcomeOf, percentOf, problemOf } from './run.js';

const MOST = 64, GRID = 14, NEAR = 18;

/* Returns the colour of a bitmap in its place at one pixel of the image, or null outside. */
const probe = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
function pixelOf({ bitmap, x: left = 0, y: top = 0, width, height }, x, y) {
  const column = Math.floor((x - left) * bitmap.width / width), row = Math.floor((y - top) * bitmap.height / height);
  if (column < 0 || row < 0 || column >= bitmap.width || row >= bitmap.height)
    return null;
  probe.clearRect(0, 0, 1, 1);
  probe.drawImage(bitmap, -column, -row);
  return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3).join(' ');
}

export function compareView(store) {
  const canvas = find('#canvas'), stage = find('#stage'), handle = find('#divider');
  const context = canvas.getContext('2d');
  const view = { scale: 1, x: 0, y: 0, split: 0.5, pointer: null, fitted: true, held: false, width: 1, height: 1 };
  const pointers = new Map();
  let action = null, queued = false;

  const toImage = (x, y) => ({ x: (x - view.x) / view.scale, y: (y - view.y) / view.scale });
  const inStage = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  function fitScale() {
    const { image } = store.state;
    return image ? Math.min(view.width / image.width, view.height / image.height) : 1;
  }

  function fit() {
    const { image } = store.state;
    if (!image)
      return;
    view.scale = fitScale();
    view.x = (view.width - image.width * view.scale) / 2;
    view.y = (view.height - image.height * view.scale) / 2;
    view.fitted = true;
    draw();
  }

  /* Scales so that the point of the image at x, y of the stage stays there. */
  function zoom(scale, x = view.width / 2, y = view.height / 2) {
    const least = fitScale(), next = Math.min(MOST, Math.max(Math.min(least, 1), scale));
    if (next <= least * 1.001 && least < 1) {
      fit();
      return;
    }
    view.x = x - (x - view.x) * next / view.scale;
    view.y = y - (y - view.y) * next / view.scale;
    view.scale = next;
    view.fitted = false;
    keepInSight();
    draw();
  }

  /* Part of the image stays on the stage. */
  function keepInSight() {
    const { image } = store.state, margin = 40;
    if (!image)
      return;
    view.x = Math.min(view.width - margin, Math.max(margin - image.width * view.scale, view.x));
    view.y = Math.min(view.height - margin, Math.max(margin - image.height * view.scale, view.y));
  }

  function draw() {
    if (!queued) {
      queued = true;
      requestAnimationFrame(paint);
    }
  }

  function place({ bitmap, x = 0, y = 0, width, height }) {
    context.drawImage(bitmap, view.x + x * view.scale, view.y + y * view.scale, width * view.scale, height * view.scale);
  }

  function paintGrid(image) {
    const first = toImage(0, 0), last = toImage(view.width, view.height);
    context.beginPath();
    for (let x = Math.max(0, Math.ceil(first.x)); x <= Math.min(image.width, last.x); x++) {
      context.moveTo(Math.round(view.x + x * view.scale) + 0.5, Math.max(0, view.y));
      context.lineTo(Math.round(view.x + x * view.scale) + 0.5, Math.min(view.height, view.y + image.height * view.scale));
    }
    for (let y = Math.max(0, Math.ceil(first.y)); y <= Math.min(image.height, last.y); y++) {
      context.moveTo(Math.max(0, view.x), Math.round(view.y + y * view.scale) + 0.5);
      context.lineTo(Math.min(view.width, view.x + image.width * view.scale), Math.round(view.y + y * view.scale) + 0.5);
    }
    context.strokeStyle = 'rgb(128 128 128 / 35%)';
    context.lineWidth = 1;
    context.stroke();
  }

  /* Without an answer, or before it, the image is dim. */
  function paintAfter(result, line) {
    const { image } = store.state;

    context.save();
    context.beginPath();
    context.rect(line, 0, view.width - line, view.height);
    context.clip();
    context.clearRect(line, 0, view.width - line, view.height);
    if (!result || result.width < image.width || result.height < image.height) {
      context.globalAlpha = 0.3;
      place(image);
      context.globalAlpha = 1;
    }
    if (result) {
      context.clearRect(view.x + result.x * view.scale, view.y + result.y * view.scale, result.width * view.scale, result.height * view.scale);
      place(result);
    }
    context.restore();
  }

  function paint() {
    const { image } = store.state, { state, result } = outcomeOf(store.state), ratio = devicePixelRatio || 1;
    const line = Math.round(view.split * view.width), divided = Boolean(image) && state !== 'idle' && !view.held;

    queued = false;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    handle.hidden = !divided;
    showPixel();
    find('#zoom').textContent = image ? `${Math.round(view.scale * 100)} %` : '';
    if (!image)
      return;
    context.imageSmoothingEnabled = view.scale < 1;
    context.imageSmoothingQuality = 'high';
    place(image);
    if (divided)
      paintAfter(result, line);
    if (view.scale >= GRID)
      paintGrid(image);
    drawMask(context, store.state, view);
    drawShapes(context, store.state, view);
    handle.style.setProperty('left', `${line}px`);
    handle.setAttribute('aria-valuenow', String(Math.round(view.split * 100)));
  }

  function setSplit(split) {
    view.split = Math.min(1, Math.max(0, split));
    draw();
  }

  function showPixel() {
    const { image } = store.state, { result } = outcomeOf(store.state), point = view.pointer && toImage(view.pointer.x, view.pointer.y);
    const x = Math.floor(point?.x), y = Math.floor(point?.y), before = point && image && pixelOf(image, x, y);
    const after = before && result && pixelOf(result, x, y);
    find('#pixel').textContent = !before ? '' : `${x}, ${y}   ${before}${after ? `  →  ${after}` : ''}`;
  }

  /* The effect of a drag: {move(point of the stage), end()}. */
  function begin(event, at) {
    const { tool } = store.state, start = { ...view };

    if (tool !== 'compare' && event.button === 0)
      return { ...(tool === 'paint' ? paintTool : shapeTool)(store, toImage(at.x, at.y), view.scale), inImage: true };
    if (!handle.hidden && (view.fitted || Math.abs(at.x - view.split * view.width) < NEAR)) {
      setSplit(at.x / view.width);
      return { move: (to) => setSplit(to.x / view.width) };
    }
    return {
      move: (to) => {
        view.x = start.x + to.x - at.x;
        view.y = start.y + to.y - at.y;
        view.fitted = false;
        keepInSight();
        draw();
      },
    };
  }

  /* Two fingers zoom and move. */
  function pinch() {
    const [a, b] = [...pointers.values()], start = { ...view };
    const distance = Math.hypot(a.x - b.x, a.y - b.y) || 1, middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    return {
      move: () => {
        const [c, d] = [...pointers.values()];
        if (!d)
          return;
        Object.assign(view, { scale: start.scale, x: start.x + (c.x + d.x) / 2 - middle.x, y: start.y + (c.y + d.y) / 2 - middle.y });
        zoom(start.scale * Math.hypot(c.x - d.x, c.y - d.y) / distance, (c.x + d.x) / 2, (c.y + d.y) / 2);
      },
    };
  }

  canvas.addEventListener('pointerdown', (event) => {
    if (!store.state.image)
      return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, inStage(event));
    action?.drop?.();
    action = pointers.size === 2 ? pinch() : pointers.size === 1 ? begin(event, inStage(event)) : null;
  });
  canvas.addEventListener('pointermove', (event) => {
    const at = inStage(event);
    if (pointers.has(event.pointerId))
      pointers.set(event.pointerId, at);
    action?.move(action.inImage ? toImage(at.x, at.y) : at);
    view.pointer = at;
    showPixel();
    if (store.state.draft || store.state.tool === 'paint')
      draw();
  });
  for (const type of ['pointerup', 'pointercancel'])
    canvas.addEventListener(type, (event) => {
      pointers.delete(event.pointerId);
      action?.end?.();
      action = null;
    });
  canvas.addEventListener('pointerleave', () => {
    view.pointer = null;
    draw();
  });
  canvas.addEventListener('wheel', (event) => {
    const at = inStage(event);
    if (!store.state.image || (!event.ctrlKey && !event.metaKey && view.fitted && document.body.scrollHeight > innerHeight + 1))
      return; // the page scrolls
    event.preventDefault();
    zoom(view.scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), at.x, at.y);
  }, { passive: false });

  function moveBy(dx, dy) {
    view.x += dx;
    view.y += dy;
    view.fitted = false;
    keepInSight();
    draw();
  }

  const keys = {
    '+': () => zoom(view.scale * 1.5), '=': () => zoom(view.scale * 1.5), '-': () => zoom(view.scale / 1.5),
    0: fit, 1: () => zoom(1), '[': () => resizeBrush(store, 0.8), ']': () => resizeBrush(store, 1.25),
    ArrowLeft: () => moveBy(40, 0), ArrowRight: () => moveBy(-40, 0), ArrowUp: () => moveBy(0, 40), ArrowDown: () => moveBy(0, -40),
  };
  stage.addEventListener('keydown', (event) => {
    const act = event.target === handle || event.target === canvas ? keys[event.key] : null;
    if (event.ctrlKey || event.metaKey || event.altKey || !act || (event.target === handle && event.key.startsWith('Arrow')))
      return;
    event.preventDefault();
    act();
  });
  handle.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, PageDown: -0.1, PageUp: 0.1 }[event.key];
    const to = { Home: 0, End: 1 }[event.key] ?? (step && view.split + step);
    if (to === undefined)
      return;
    event.preventDefault();
    setSplit(to);
  });
  handle.addEventListener('pointerdown', (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener('pointermove', (event) => {
    if (handle.hasPointerCapture(event.pointerId))
      setSplit(inStage(event).x / view.width);
  });

  const hold = (on) => () => {
    view.held = on;
    draw();
  };
  const before = find('#before');
  for (const [type, on] of [['pointerdown', true], ['pointerup', false], ['pointerleave', false], ['blur', false]])
    before.addEventListener(type, hold(on));
  before.addEventListener('keydown', (event) => (event.key === ' ' || event.key === 'Enter') && hold(true)());
  before.addEventListener('keyup', hold(false));
  find('#fit').addEventListener('click', fit);
  find('#one').addEventListener('click', () => zoom(1));
  find('#in').addEventListener('click', () => zoom(view.scale * 2));
  find('#out').addEventListener('click', () => zoom(view.scale / 2));

  new ResizeObserver(() => {
    const box = canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    view.width = Math.max(1, box.width);
    view.height = Math.max(1, box.height);
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    if (view.fitted)
      fit();
    else
      draw();
  }).observe(canvas);
  store.watch((s) => [s.image?.width, s.image?.height], fit);
  store.watch((s) => [s.image, outcomeOf(s), s.regions, s.roi, s.shape, s.draft, s.mask, s.stroke, s.brush, s.tool], ({ tool }) => {
    stage.dataset.tool = tool;
    draw();
  });
  store.watch((s) => [percentOf(s), outcomeOf(s).state], (s) => {
    find('#preview').hidden = percentOf(s) === 100 || outcomeOf(s).state === 'idle';
    find('#preview').textContent = `Preview at ${percentOf(s)} %`;
  });
  store.watch((s) => [outcomeOf(s).state], (s) => stage.setAttribute('aria-busy', String(outcomeOf(s).state === 'busy')));
  addEventListener('themechange', draw);
  return { view, zoom, fit };
}

/* Shows an error on the stage. */
export function problemView(store) {
  const box = find('#problem');
  let timer = 0;

  store.watch((s) => [problemOf(s)], (s) => {
    const problem = problemOf(s);
    clearInterval(timer);
    box.hidden = !problem;
    if (!problem)
      return;
    const again = h('button', { type: 'button', onclick: () => store.set({ again: store.state.again + 1 }) }, 'Try again');
    const wait = problem.retryAfter ?? (problem.status === 0 ? 2 : null);
    box.replaceChildren(h('div', {}, h('strong', {}, problem.title || 'Something went wrong'),
      h('p', {}, problem.detail || problem.message || '')), again);
    if (problem.status === 401)
      again.replaceWith(h('button', { type: 'button', onclick: () => {
        find('#token').open = true;
        find('#token input').focus();
      } }, 'Enter a token'));
    else if (wait !== null)
      timer = countDown(again, Math.ceil(wait), () => store.set({ again: store.state.again + 1 }));
  });
}

function countDown(button, seconds, act) {
  let left = seconds;
  const timer = setInterval(() => {
    if (--left <= 0) {
      clearInterval(timer);
      act();
    }
    button.textContent = `Try again (${left} s)`;
  }, 1000);
  button.textContent = `Try again (${left} s)`;
  return timer;
}
