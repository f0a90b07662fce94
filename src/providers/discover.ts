/** Providers that nobody wrote down: by well-known keys in the environment, and by asking this machine's runtimes. */
import type { ProviderConfig, Timeouts } from '../config/schema.ts'
import { isRecord } from '../kit/json.ts'
import { PRESETS } from './presets.ts'
import type { Transport } from './upstream/transport.ts'

/** One provider for each vendor whose key is in the environment. The keys themselves stay there. */
export function discoverProviders(environment: Record<string, string | undefined>): Record<string, ProviderConfig> {
  const found: Record<string, ProviderConfig> = {}
  for (const [id, preset] of Object.entries(PRESETS)) {
    if (preset.found_by_key === false) continue
    if (preset.key_env.some((name) => environment[name])) found[id] = { preset: id }
  }
  return found
}

/** A runtime on this machine answers its model list within a few milliseconds; nobody should wait for one that is not there. */
const PROBE_SECONDS = 0.5
const PROBE_TIMEOUTS: Required<Timeouts> = {
  connect_seconds: PROBE_SECONDS,
  first_byte_seconds: PROBE_SECONDS,
  idle_seconds: PROBE_SECONDS,
  total_seconds: PROBE_SECONDS,
}
/** A list of thousands of models is no local runtime's. */
const MAX_LIST_BYTES = 1024 * 1024

type Runtime = { preset: string; port: number; owner: string }
const RUNTIMES: Runtime[] = Object.entries(PRESETS).flatMap(([preset, { local }]) =>
  local ? [{ preset, ...local }] : [],
)

type ProbeParts = {
  transport: Transport
  signal: AbortSignal
  /** Which ports to ask, for which runtime. Default: the customary ones. */
  ports?: { preset: string; port: number }[]
}

/**
 * Asks the customary ports of 127.0.0.1 for their model lists, all at once. A runtime is known by its answer, so one
 * that listens on another's port is still called by its own name. What does not answer as a runtime is left alone.
 */
export async function probeLocal({
  transport,
  signal,
  ports = RUNTIMES,
}: ProbeParts): Promise<Record<string, ProviderConfig>> {
  const answers = await Promise.all(
    ports.map(async ({ preset, port }) => {
      const owner = await askOwner(transport, port, signal)
      if (owner === undefined) return undefined
      return { preset: RUNTIMES.find((runtime) => runtime.owner === owner)?.preset ?? preset, port }
    }),
  )
  const found: Record<string, ProviderConfig> = {}
  for (const answer of answers) {
    if (!answer) continue
    const { preset, port } = answer
    const id = found[preset] ? `${preset}-${port}` : preset
    found[id] = { preset, base_url: `http://127.0.0.1:${port}/v1` }
  }
  return found
}

/** What a model list says of its owner; undefined where there is no list, or a gateway (ours, perhaps) answers. */
async function askOwner(transport: Transport, port: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    const answer = await transport.send({
      provider: `127.0.0.1:${port}`,
      url: `http://127.0.0.1:${port}/v1/models`,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': 'gatehouse' },
      signal,
      timeouts: PROBE_TIMEOUTS,
      stream: false,
      isProbe: true,
    })
    if (answer.status !== 200) {
      answer.drop()
      return undefined
    }
    const list: unknown = JSON.parse(await answer.text(MAX_LIST_BYTES))
    if (!isRecord(list) || !Array.isArray(list.data) || list.object !== 'list') return undefined
    const first: unknown = list.data[0]
    if (!isRecord(first)) return ''
    return first.supported_endpoint_types === undefined ? String(first.owned_by ?? '') : undefined
  } catch {
    // Nobody there, or somebody else: both are what was asked.
    return undefined
  }
}
