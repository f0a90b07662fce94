/** Finds providers without configuration: by well-known keys in the environment, and by probing this machine's runtimes. */
import type { ProviderConfig, Timeouts } from '../config/schema/schema.ts'
import { isRecord } from '../kit/json.ts'
import { PRESETS } from './presets.ts'
import type { Transport } from './upstream/transport.ts'

/** Returns one provider for each preset whose key is in the environment. The keys themselves stay there. */
export function discoverProviders(environment: Record<string, string | undefined>): Record<string, ProviderConfig> {
  const found: Record<string, ProviderConfig> = {}
  for (const [id, preset] of Object.entries(PRESETS)) {
    if (preset.found_by_key === false) continue
    if (preset.key_env.some((name) => environment[name])) found[id] = { preset: id }
  }
  return found
}

/** A runtime on this machine returns its model list within a few milliseconds; a start must not wait for a missing one. */
const PROBE_SECONDS = 0.5
const PROBE_TIMEOUTS: Required<Timeouts> = {
  connect_seconds: PROBE_SECONDS,
  first_byte_seconds: PROBE_SECONDS,
  idle_seconds: PROBE_SECONDS,
  total_seconds: PROBE_SECONDS,
}
/** No local runtime has a list of thousands of models. */
const MAX_LIST_BYTES = 1024 * 1024

type Runtime = { preset: string; port: number; owner: string }
const RUNTIMES: Runtime[] = Object.entries(PRESETS).flatMap(([preset, { local }]) =>
  local ? [{ preset, ...local }] : [],
)

type ProbeParts = {
  transport: Transport
  signal: AbortSignal
  /** Which ports to probe, for which runtime. Default: the usual ones. */
  ports?: { preset: string; port: number }[]
}

/**
 * Requests the model lists of the usual ports of 127.0.0.1, all at once. A runtime is recognised by its response, so one that
 * listens on another's port still gets its own name. Anything that does not respond as a runtime is ignored.
 */
export async function probeLocal({
  transport,
  signal,
  ports = RUNTIMES,
}: ProbeParts): Promise<Record<string, ProviderConfig>> {
  const answers = await Promise.all(
    ports.map(async ({ preset, port }) => {
      const owner = await fetchOwner(transport, port, signal)
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

/** Reads the owner in a model list; undefined where there is no list, or where a gateway (perhaps this one) responds. */
async function fetchOwner(transport: Transport, port: number, signal: AbortSignal): Promise<string | undefined> {
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
    // No listener, or something else listens: no runtime was found.
    return undefined
  }
}
