/** The figures that the page can show, and the ways to split them. */
import { errorsOf, type Sums } from '../../api/summary.ts'
import { shortCount, shortMoney } from '../../lib/format.ts'

type Read = Pick<Sums, 'calls' | 'errors' | 'input_tokens' | 'output_tokens' | 'cost' | 'charge' | 'cache_hits'>
type Measure = { label: string; read(sums: Read): number; format(value: number): string }

export const MEASURES = {
  cost: { label: 'Cost', read: ({ cost }) => cost, format: shortMoney },
  charge: { label: 'Charge', read: ({ charge }) => charge, format: shortMoney },
  calls: { label: 'Calls', read: ({ calls }) => calls, format: shortCount },
  tokens: { label: 'Tokens', read: (sums) => sums.input_tokens + sums.output_tokens, format: shortCount },
  errors: { label: 'Failed calls', read: errorsOf, format: shortCount },
} satisfies Record<string, Measure>

export type MeasureName = keyof typeof MEASURES
export const MEASURE_NAMES = Object.keys(MEASURES) as [MeasureName, ...MeasureName[]]

export const SPLITS = {
  project: 'Project',
  token: 'Token',
  model: 'Model',
  provider: 'Provider',
  user: 'End user',
  tag: 'Tag',
} as const
export type Split = keyof typeof SPLITS
export const SPLIT_NAMES = Object.keys(SPLITS) as [Split, ...Split[]]

/** The page of what a series stands for. */
export function pageOf(by: Split, key: string): string | undefined {
  if (key === '') return undefined
  if (by === 'project') return `/projects/${key}`
  if (by === 'token') return `/tokens/${key}`
  return by === 'model' ? `/models/${key}` : undefined
}

/** As the gateway names what has no key, or stands for the rest. */
export const nameOf = (by: Split, { key, name }: { key: string | null; name: string }): string => {
  if (key === null) return 'all others'
  return key === '' ? `no ${SPLITS[by].toLowerCase()}` : name
}
