/** Reads the text of a scrape: the values of its series. */
export type Scrape = {
  text: string
  /** The names of metrics, as their type lines say. */
  types: Map<string, string>
  /** The sum of the series of this name that have these labels. */
  sum(name: string, labels?: Record<string, string>): number
  /** The values of a label in the series of this name. */
  values(name: string, label: string): string[]
  /** The names of all series, with `_bucket`, `_sum` and `_count`, and the labels that each has. */
  names(): Map<string, Set<string>>
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g

export function readScrape(text: string): Scrape {
  const types = new Map<string, string>()
  const series: { name: string; labels: Map<string, string>; value: number }[] = []
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line)
    if (type) types.set(type[1] ?? '', type[2] ?? '')
    if (line === '' || line.startsWith('#')) continue
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`This is no series: ${line}`)
    const found = [...labels.matchAll(LABEL)].map(([, label = '', text = '']) => [label, text] as const)
    series.push({ name, labels: new Map(found), value: Number(value.replace('Inf', 'Infinity')) })
  }
  return {
    text,
    types,
    sum(name, labels = {}) {
      const wanted = Object.entries(labels)
      const found = series.filter(
        (one) => one.name === name && wanted.every(([key, value]) => one.labels.get(key) === value),
      )
      return found.reduce((sum, { value }) => sum + value, 0)
    },
    values: (name, label) => [
      ...new Set(series.filter((one) => one.name === name).map((one) => one.labels.get(label) ?? '')),
    ],
    names() {
      const names = new Map<string, Set<string>>()
      for (const { name, labels } of series) {
        const known = names.get(name) ?? new Set()
        for (const label of labels.keys()) known.add(label)
        names.set(name, known)
      }
      return names
    },
  }
}
