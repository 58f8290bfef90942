/* The service's metrics, in Prometheus' text format (0.0.4); other lines are skipped. */
const ABOUT = /^# (HELP|TYPE) (?:convolved_)?(\S+) (.*)$/, SAMPLE = /^(?:convolved_)?([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g, BOUND = /,?le="([^"]*)"$/, PART = /_(bucket|sum|count)$/;

const numberOf = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity })[text] ?? Number(text);
const textOf = (value) => value.replace(/\\(.)/g, (_, sign) => (sign === 'n' ? '\n' : sign));

/* Returns a map of name, without convolved_, to {name, type, text, series}. A series is {key,
 * labels, value} or, for a histogram, {key, labels, count, sum, buckets: [[bound, count of all up
 * to it], …]}; the key is its labels. */
export function parse(text) {
  const metrics = new Map(), series = new Map();
  const metric = (name) => metrics.get(name) || metrics.set(name, { name, type: '', text: '', series: [] }).get(name);

  function seriesOf(one, labels) {
    const key = `${one.name} ${labels}`;
    if (!series.has(key)) {
      const pairs = Object.fromEntries([...labels.matchAll(LABEL)].map(([, name, value]) => [name, textOf(value)]));
      series.set(key, { key: labels, labels: pairs, ...(one.type === 'histogram' ? { count: 0, sum: 0, buckets: [] } : { value: 0 }) });
      one.series.push(series.get(key));
    }
    return series.get(key);
  }

  for (const line of text.split('\n')) {
    const about = ABOUT.exec(line), sample = SAMPLE.exec(line), value = sample && numberOf(sample[3]);
    if (about)
      metric(about[2])[about[1] === 'TYPE' ? 'type' : 'text'] = about[3];
    if (!sample || Number.isNaN(value))
      continue;
    const [, name, labels = ''] = sample, part = PART.exec(name)?.[1], base = name.replace(PART, '');
    if (!part || metrics.get(base)?.type !== 'histogram')
      seriesOf(metric(name), labels).value = value;
    else if (part === 'bucket')
      seriesOf(metric(base), labels.replace(BOUND, '')).buckets.push([numberOf(BOUND.exec(labels)?.[1]), value]);
    else
      seriesOf(metric(base), labels)[part] = value;
  }
  return metrics;
}

/* Returns the value below which this share of a histogram's counts since an earlier reading of it,
 * if there is one, lies: within a bucket in proportion, as Prometheus has it. 0 if it has counted
 * nothing. */
export function quantile(now, before, share) {
  const earlier = new Map(before && before.count <= now.count ? before.buckets : []);
  const counts = now.buckets.map(([bound, count]) => [bound, count - (earlier.get(bound) || 0)]).sort(([a], [b]) => a - b);
  const rank = share * (counts.at(-1)?.[1] || 0), i = counts.findIndex(([, count]) => rank > 0 && count >= rank);

  if (i < 0)
    return 0;
  const [bound, count] = counts[i], [from, below] = i ? counts[i - 1] : [0, 0];
  return bound === Infinity ? from : from + (bound - from) * (rank - below) / (count - below);
}
