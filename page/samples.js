/* Six pictures that this page paints itself, each good for some of the filters. */
export const WIDTH = 960, HEIGHT = 640;

/* Returns numbers from 0 to 1, the same ones every time (a linear congruential generator modulo
 * 2^32). */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/* Sets every pixel by paint(x, y, before) → [red, green, blue], in units of the picture. */
function perPixel(context, width, height, paint) {
  const data = context.getImageData(0, 0, width, height);

  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at += 4) {
      const [r, g, b] = paint(x * WIDTH / width, y * HEIGHT / height, data.data.subarray(at, at + 3));
      data.data[at] = r;
      data.data[at + 1] = g;
      data.data[at + 2] = b;
      data.data[at + 3] = 255;
    }
  context.putImageData(data, 0, 0);
}

function gradient(context, stops, x0, y0, x1, y1) {
  const fill = context.createLinearGradient(x0, y0, x1, y1);
  stops.forEach((color, i) => fill.addColorStop(i / (stops.length - 1), color));
  return fill;
}

function hills(context) {
  const random = randomNumbers(7);
  const layers = ['#8fa7b8', '#6d8a94', '#4f7069', '#38564a', '#223a30'];

  context.fillStyle = gradient(context, ['#2c5d94', '#8fb8d6', '#f4d7b5'], 0, 0, 0, 420);
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = '#fff4d6';
  context.beginPath();
  context.arc(690, 190, 46, 0, 7);
  context.fill();
  layers.forEach((color, i) => {
    const phase = random() * 9, base = 300 + i * 66;
    context.fillStyle = color;
    context.beginPath();
    context.moveTo(0, HEIGHT);
    for (let x = 0; x <= WIDTH; x += 4)
      context.lineTo(x, base - 70 * Math.sin(x / (240 - i * 25) + phase) - 28 * Math.sin(x / 61 + phase * 3)
        - (i > 2 ? 12 * random() : 3 * random()));
    context.lineTo(WIDTH, HEIGHT);
    context.fill();
  });
  for (let i = 0; i < 60; i++) {
    const x = random() * WIDTH, y = 560 + random() * 80, tall = 40 + random() * 70;
    context.fillStyle = `rgb(${20 + random() * 20},${38 + random() * 30},${30 + random() * 14})`;
    context.beginPath();
    context.moveTo(x, y - tall);
    context.lineTo(x + tall / 4, y);
    context.lineTo(x - tall / 4, y);
    context.fill();
  }
}

function spheres(context, width, height) {
  const balls = [[250, 350, 150, 204, 70, 40], [520, 250, 110, 40, 110, 170], [700, 420, 130, 222, 170, 50],
    [430, 500, 70, 70, 140, 90], [860, 230, 64, 150, 70, 150]];

  perPixel(context, width, height, (x, y) => {
    let color = [236 - y / 9, 233 - y / 9, 228 - y / 9];
    for (const [cx, cy, radius, r, g, b] of balls) {
      const shadow = Math.hypot((x - cx - radius * 0.5) / 1.25, (y - cy - radius * 0.95) / 0.32) / radius;
      if (shadow < 1)
        color = color.map((c) => c * (0.62 + 0.38 * shadow * shadow));
    }
    for (const [cx, cy, radius, r, g, b] of balls) {
      const dx = (x - cx) / radius, dy = (y - cy) / radius, d = dx * dx + dy * dy;
      if (d > 1)
        continue;
      const dz = Math.sqrt(1 - d), light = Math.max(0, -0.5 * dx - 0.6 * dy + 0.62 * dz);
      const shine = Math.max(0, -0.3 * dx - 0.4 * dy + 0.86 * dz) ** 60;
      color = [r, g, b].map((c) => c * (0.22 + 0.85 * light) + 235 * shine);
    }
    return color;
  });
}

function letters(context) {
  const lines = ['Every pixel becomes a weighted sum', 'of its neighbours. What the weights', 'are decides whether it is a blur,',
    'an edge, a shadow or a line.', '0123456789  +−×÷=  {[()]}  @&%?!'];

  context.fillStyle = gradient(context, ['#f7f3e8', '#d8d2c2'], 0, 0, WIDTH, HEIGHT);
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = '#26231d';
  context.font = '600 84px Georgia, "Times New Roman", serif';
  context.fillText('Convolution', 60, 130);
  lines.forEach((line, i) => {
    context.font = `${44 - i * 5}px Georgia, "Times New Roman", serif`;
    context.fillText(line, 62, 215 + i * 66);
  });
  context.fillStyle = '#9d2f12';
  context.fillRect(62, 156, 836, 5);
  for (let i = 0; i < 60; i++)
    context.fillRect(62 + i * 14, 560, 1 + i / 8, 40);
}

function specks(context, width, height) {
  const random = randomNumbers(3), coins = [];

  context.fillStyle = '#7b7f78';
  context.fillRect(0, 0, WIDTH, HEIGHT);
  for (let tries = 0; coins.length < 34 && tries < 4000; tries++) {
    const coin = { x: 40 + random() * 880, y: 40 + random() * 560, r: 22 + random() * 52 };
    if (coins.some((other) => Math.hypot(other.x - coin.x, other.y - coin.y) < other.r + coin.r - 3))
      continue;
    coins.push(coin);
    const light = 60 + random() * 20, fill = context.createRadialGradient(coin.x - coin.r / 3, coin.y - coin.r / 3, 2,
      coin.x, coin.y, coin.r);
    fill.addColorStop(0, `hsl(${30 + random() * 20} 45% ${light + 16}%)`);
    fill.addColorStop(1, `hsl(${28 + random() * 16} 40% ${light - 14}%)`);
    context.fillStyle = fill;
    context.beginPath();
    context.arc(coin.x, coin.y, coin.r, 0, 7);
    context.fill();
  }
  perPixel(context, width, height, (x, y, before) => {
    const draw = random(), noise = (random() + random() - 1) * 26;
    return draw < 0.02 ? [12, 12, 12] : draw > 0.98 ? [250, 250, 250] : [...before].map((c) => c + noise);
  });
}

function rings(context, width, height) {
  perPixel(context, width, height, (x, y) => {
    const dx = x - WIDTH / 2, dy = y - HEIGHT / 2, wave = 127.5 + 120 * Math.cos((dx * dx + dy * dy) / 330);
    return [wave, wave, wave];
  });
}

function colours(context, width, height) {
  perPixel(context, width, height, (x, y) => {
    const angle = Math.atan2(y - 320, x - 300), far = Math.min(1, Math.hypot(x - 300, y - 320) / 270);
    if (x > 640) {
      const column = Math.floor((x - 640) / 80), row = Math.floor(y / 80);
      const step = 255 * row / 7;
      return [[step, step, step], [step, 40, 40], [40, step, 40], [40, 40, step]][column];
    }
    const part = (turn) => 255 * (1 - far + far * (0.5 + 0.5 * Math.cos(angle - turn)));
    return [part(0), part(2.0944), part(4.1888)];
  });
}

/* type: that of its file. */
export const samples = [
  { name: 'hills', title: 'Hills', paint: hills, type: 'image/jpeg' },
  { name: 'spheres', title: 'Spheres', paint: spheres, type: 'image/jpeg' },
  { name: 'letters', title: 'Letters', paint: letters, type: 'image/png' },
  { name: 'specks', title: 'Coins', paint: specks, type: 'image/png' },
  { name: 'rings', title: 'Rings', paint: rings, type: 'image/png' },
  { name: 'colours', title: 'Colours', paint: colours, type: 'image/png' },
];

/* Paints a sample onto a canvas of any size. */
export function paintSample(sample, canvas) {
  const context = canvas.getContext('2d', { willReadFrequently: true });

  context.setTransform(canvas.width / WIDTH, 0, 0, canvas.height / HEIGHT, 0, 0);
  sample.paint(context, canvas.width, canvas.height);
}

/* Returns the sample as a file. */
export async function sampleFile(sample) {
  const canvas = document.createElement('canvas');
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  paintSample(sample, canvas);
  const blob = await new Promise((done) => canvas.toBlob(done, sample.type, 0.92));
  return new File([blob], `${sample.name}.${sample.type === 'image/jpeg' ? 'jpg' : 'png'}`, { type: sample.type });
}
