/** The types of the matrix for families other than chat: a family has clients, calls and targets. */
import type { ModelConfig, ProviderConfig } from '../../../src/config/schema/schema.ts'
import type { EndpointFamily } from '../../../src/spec/endpoint-family.ts'
import type { PageColumn, PageRow } from '../page.ts'
import type { Fault } from '../types.ts'

/** An error as the client library reports it; `param` if the client reports the field. */
export type FamilyFault = Fault & { param?: string | null | undefined }

/** How the client library reports the error of a refusal. */
export type Faulty = { fault(error: unknown, status: number): FamilyFault }

export type Gateway = { origin: string; token: string }

export type FamilyRow<Client> = PageRow & { connect(gateway: Gateway): Client }

/** A provider on loopback: its address, and how to stop it. */
export type Started = { origin: string; stop(): Promise<void> }

/** A kind of provider that serves the family, and its configuration. */
export type FamilyKind = {
  name: string
  start(): Started
  /** The path of its base URL. */
  path: string
  provider: ProviderConfig
  /** The provider's own model, and its configuration. */
  model: string
  more?: ModelConfig
  /** Features that it does not support by design and refuses by name. */
  unsupported?: readonly string[]
}

/** The model of a request, and whether a simulated provider or the sandbox serves it. */
export type FamilyTarget = { name: string; model: string; isVendor: boolean; unsupported: readonly string[] }

export type FamilyCell<Client> = {
  row: FamilyRow<Client>
  client: Client
  target: FamilyTarget
  /** The same client with a token that was never issued. */
  unauthorized: Client
}

export type FamilyColumn<Client> = PageColumn & {
  /** Whether the client has this call. */
  has?(client: Client): boolean
  check(cell: FamilyCell<Client>): Promise<void>
}

export type Family<Client> = {
  family: EndpointFamily
  /** The sandbox's model. */
  sandbox: string
  kinds: readonly FamilyKind[]
  rows: readonly FamilyRow<Client>[]
  columns: readonly FamilyColumn<Client>[]
}

const idOf = ({ family }: { family: string }, { name }: FamilyKind) => `${family}-${name}`

/** The sandbox first. */
export const targetsOf = (one: Pick<Family<never>, 'family' | 'sandbox' | 'kinds'>): FamilyTarget[] => [
  { name: 'sandbox', model: one.sandbox, isVendor: false, unsupported: [] },
  ...one.kinds.map((kind) => ({
    name: kind.name,
    model: `${idOf(one, kind)}/m`,
    isVendor: true,
    unsupported: kind.unsupported ?? [],
  })),
]

/** Starts the providers of a family, and returns the gateway's configuration for them. */
export function startKinds(one: Pick<Family<never>, 'family' | 'kinds'>) {
  const { family } = one
  const started = one.kinds.map((kind) => ({ kind, id: idOf(one, kind), vendor: kind.start() }))
  const providers: Record<string, ProviderConfig> = {}
  const models: Record<string, ModelConfig> = {}
  for (const { kind, id, vendor } of started) {
    providers[id] = { key: KEY, ...kind.provider, base_url: `${vendor.origin}${kind.path}` }
    models[`${id}/m`] = { families: [family], targets: [{ provider: id, model: kind.model }], ...kind.more }
  }
  return { providers, models, stop: () => Promise.all(started.map(({ vendor }) => vendor.stop())) }
}

/** The key that the gateway sends to providers. */
export const KEY = 'vendor-key'

/** A family for the test, whatever its clients support. */
export type AnyFamily = Pick<Family<never>, 'family' | 'sandbox' | 'kinds'> & {
  rows: readonly PageRow[]
  columns: readonly PageColumn[]
  /** By the names of row and column. */
  has(row: PageRow, column: PageColumn): boolean
  check(at: { row: PageRow; column: PageColumn; target: FamilyTarget }, gateway: Gateway): Promise<void>
}

/** A token that was never issued. */
export const UNKNOWN = `sk-${'0'.repeat(48)}`
/** Used only to find out which calls a client has. */
const NOWHERE = { origin: 'http://127.0.0.1:9', token: 'x' }

export function anyFamily<Client>(one: Family<Client>): AnyFamily {
  const { family, sandbox, kinds, rows, columns } = one
  const rowOf = (params: PageRow) => found(rows.find(({ name }) => name === params.name))
  const columnOf = (params: PageColumn) => found(columns.find(({ name }) => name === params.name))
  return {
    family,
    sandbox,
    kinds,
    rows,
    columns,
    has: (row, column) => columnOf(column).has?.(rowOf(row).connect(NOWHERE)) ?? true,
    async check({ row, column, target }, gateway) {
      const current = rowOf(row)
      const client = current.connect(gateway)
      const unauthorized = current.connect({ ...gateway, token: UNKNOWN })
      await columnOf(column).check({ row: current, client, target, unauthorized })
    },
  }
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('There is no such row or column.')
  return value
}
