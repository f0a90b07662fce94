/** The stage lookup: answers a call from the response cache, or caches the answer that the provider gives to it. */
import { createHash } from 'node:crypto'
import type { ModelCache } from '../config/schema/cache-schema.ts'
import type { Target } from '../providers/provider.ts'
import type { Caller } from '../spec/token.ts'
import type { Hit, Lookup, Miss, ResponseCache, SemanticLookup } from './cache/response-cache.ts'
import type { Call, CallRecord } from './call.ts'
import type { AnyMeter, CacheableRequest, Family, ResponseStream, StreamFamily, UsageOf } from './family.ts'
import type { PreparedCall } from './prepared-call.ts'
import { boundsOf } from './routing/bounds.ts'
import { targetName } from './routing/target-state.ts'

/** Part of every key: increased when the form of the entries changes. */
const KEY_VERSION = 3
/** The vector of a text by an embedding model, on behalf of the call; undefined where there is none. Never rejects. */
export type EmbedText = (
  text: string,
  on: { call: Call; model: string; timeout_ms: number },
) => Promise<readonly number[] | undefined>

const SEMANTIC_DEFAULTS = { threshold: 0.95, timeout_ms: 500 } as const
const DEFAULTS = { ttl_seconds: 3600, max_entry_bytes: 1024 * 1024, scope: 'token', requests: 'deterministic' } as const

type Keyed<Work> = Pick<PreparedCall<Work, unknown, AnyMeter>, 'model' | 'work' | 'record'>

/** How to look up a call; undefined: the cache is off for it, or may not serve it. Notes in its record which. */
export function lookupFor<Work>(
  { cacheable }: Pick<Family<never, Work, never, AnyMeter>, 'cacheable'>,
  { model, work, record }: Keyed<Work>,
  embedText?: EmbedText,
): Lookup | undefined {
  const { call } = record
  const directive = call.options?.cache
  if (model.cache === undefined && (directive === undefined || directive === 'off')) return undefined
  if (!cacheable) return undefined
  const settings = { ...DEFAULTS, ...model.cache }
  const found = directive === 'off' ? undefined : cacheable(work)
  if (!found || (directive === undefined && settings.requests === 'deterministic' && !found.is_deterministic)) {
    record.cache = 'bypass'
    return undefined
  }
  record.cache = 'miss'
  const { ttl_seconds, max_entry_bytes } = settings
  const { deadline } = boundsOf(model.routing, call.arrived, call.options)
  const key = keyOf({ model, record, request: found.request }, settings.scope)
  const is_refresh = directive === 'refresh'
  // A guarded text is for the model alone, and an answer to another text was checked for that one.
  const semantic =
    embedText && !is_refresh && !call.guards ? semanticLookup({ found, model, record }, embedText) : undefined
  const project = settings.scope === 'all' ? undefined : call.caller.project_id
  return {
    model: model.id,
    project,
    key,
    ttl_seconds,
    max_entry_bytes,
    is_refresh,
    deadline,
    signal: call.signal,
    semantic,
  }
}

type Semantic = Pick<Keyed<unknown>, 'model' | 'record'> & { found: CacheableRequest }

/** Undefined: only an equal request may get the answer. */
function semanticLookup({ found, model, record }: Semantic, embedText: EmbedText): SemanticLookup | undefined {
  const { semantic, scope = DEFAULTS.scope } = model.cache ?? {}
  const similar = semantic && found.similar?.()
  if (!similar) return undefined
  const { embedding_model, threshold, timeout_ms } = { ...SEMANTIC_DEFAULTS, ...semantic }
  const request = ['similar', embedding_model, numbersIn(similar.text), similar.rest]
  const embed = () => embedText(similar.text, { call: record.call, model: embedding_model, timeout_ms })
  return { partition: keyOf({ model, record, request }, scope), threshold, embed }
}

/** With their signs and separators, of every script. Texts that differ in a number are similar, and their answers are not. */
const NUMBERS = /[-−]?\p{N}+(?:[.,:/]\p{N}+)*/gu

const numbersIn = (text: string): string[] => text.match(NUMBERS) ?? []

type Key = Pick<Keyed<unknown>, 'model' | 'record'> & { request: unknown }

function keyOf({ model, record, request }: Key, scope: NonNullable<ModelCache['scope']>): string {
  const { family, is_stream, call } = record
  // The targets, so that a change of the configuration is not answered by the model before; the caller may choose among them.
  const served: unknown[] = [model.id, model.targets.map(servedBy), call.options?.tags]
  if (call.options?.provider) served.push(call.options.provider)
  if (model.targets.some(({ when }) => when?.projects)) served.push({ project: call.caller.project_id })
  // The end user, in every scope: an answer may contain what only that one may know, and the header is no part of the body.
  const parts: unknown[] = [KEY_VERSION, sharersOf(scope, call.caller), call.end_user, family, is_stream, ...served]
  if (call.guards) parts.push(call.guards.fingerprint)
  return createHash('sha256')
    .update(JSON.stringify([...parts, request]))
    .digest('hex')
}

/** Another base URL or upstream model may answer otherwise, under the same name. */
const servedBy = (target: Target): unknown[] => [targetName(target), target.provider.destination]

const sharersOf = (scope: NonNullable<ModelCache['scope']>, { token_id, project_id }: Caller): string[] =>
  scope === 'all' ? [] : [scope === 'project' ? (project_id ?? token_id) : token_id]

type Answer<Answer, M extends AnyMeter> = { answer: Answer; usage: UsageOf<M> }

type Looking<Work, Result, M extends AnyMeter> = {
  cache: ResponseCache
  lookup: Lookup
  prepared: PreparedCall<Work, Result, M>
}

/** The cached answer, or that of `execute`. */
export async function lookUpAnswer<Work, Result, M extends AnyMeter>(
  codec: NonNullable<Family<never, Work, Result, M>['codec']>,
  { cache, lookup, prepared }: Looking<Work, Result, M>,
  execute: () => Promise<Answer<Result, M>>,
): Promise<Answer<Result, M>> {
  const { model, record } = prepared
  const found = await cache.find(lookup)
  if ('answer' in found) {
    const cached = readable(() => {
      const { usage, text, target } = JSON.parse(found.answer) as { usage: UsageOf<M>; text: string; target?: string }
      if (typeof text !== 'string') throw new TypeError('no text')
      return { answer: codec.decode(text, prepared.work), usage, target }
    })
    if (!cached) return executeUncached(record, execute)
    noteHit(record, found, cached.target)
    return { answer: cached.answer, usage: cached.usage }
  }
  dropOnAbort(found, lookup)
  try {
    const { answer: given, usage } = await execute()
    const { text, answer } = codec.encode(given, usage)
    // A fallback has answered for the model: a later request may get the answer of the model itself.
    if (prepared.model === model) found.put(JSON.stringify({ usage, text, target: nameOf(record) }))
    else found.drop('failed')
    return { answer, usage }
  } catch (thrown) {
    found.drop('failed')
    throw thrown
  }
}

/** The cached stream, or that of the provider, which is cached when it is complete. */
export async function lookUpStream<Work, M extends AnyMeter>(
  { replay, encodeError }: Required<Pick<StreamFamily<never, Work, M>, 'replay' | 'encodeError'>>,
  { cache, lookup, prepared }: Looking<Work, ResponseStream<UsageOf<M>>, M>,
  execute: () => Promise<ResponseStream<UsageOf<M>>>,
): Promise<ResponseStream<UsageOf<M>>> {
  const { model, record } = prepared
  const found = await cache.find(lookup)
  if ('answer' in found) {
    const cached = readable(() => {
      const { parts, target } = JSON.parse(found.answer) as { parts: string[]; target?: string }
      if (!parts.every((part) => typeof part === 'string')) throw new TypeError('no text')
      return { parts: replay(parts, prepared.work), target }
    })
    if (!cached) return executeUncached(record, execute)
    noteHit(record, found, cached.target)
    const { parts } = cached
    return { parts: inOrder(parts), includesUsage: false, end: () => '' }
  }
  dropOnAbort(found, lookup)
  try {
    const stream = await execute()
    const fail = stream.fail ?? ((error) => encodeError(error, prepared.work))
    if (prepared.model === model) {
      const put = (parts: string[]) => found.put(JSON.stringify({ parts, target: nameOf(record) }))
      return recorded({ ...stream, fail }, { ...found, put }, lookup.max_entry_bytes)
    }
    found.drop('failed')
    return stream
  } catch (thrown) {
    found.drop('failed')
    throw thrown
  }
}

const nameOf = ({ target }: CallRecord): string | undefined => target && targetName(target)

/** Undefined where an entry is none of ours: it was written by something else, or changed. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function executeUncached<T>(record: CallRecord, execute: () => Promise<T>): Promise<T> {
  record.cache = 'bypass'
  return execute()
}

function noteHit(record: CallRecord, { age_seconds, similarity }: Hit, target: string | undefined): void {
  record.cache = 'hit'
  if (target !== undefined) record.cache_target = target
  record.cache_age_seconds = age_seconds
  if (similarity !== undefined) record.cache_similarity = similarity
}

/** Also where the response is never read: one of the requests that wait for it then calls the provider. */
function dropOnAbort(miss: Miss, { signal }: Lookup): void {
  if (signal.aborted) miss.drop('left')
  else signal.addEventListener('abort', () => miss.drop('left'), { once: true })
}

async function* inOrder(parts: string[]): AsyncGenerator<string> {
  yield* parts
}

type Recordable<Usage> = ResponseStream<Usage> & Required<Pick<ResponseStream<Usage>, 'fail'>>

type RecordedMiss = Pick<Miss, 'drop'> & { put(parts: string[]): void }

/** The same stream; caches it once its end was encoded. */
function recorded<Usage>(stream: Recordable<Usage>, miss: RecordedMiss, max_bytes: number): ResponseStream<Usage> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let parts: string[] | undefined = []
  let bytes = 0

  /** Stops recording a stream that is too large, or is not text. */
  function take(part: string | Uint8Array): void {
    if (!parts) return
    bytes += part.length
    try {
      if (bytes > max_bytes) throw new RangeError('The stream is larger than an entry may be.')
      parts.push(typeof part === 'string' ? part : decoder.decode(part))
    } catch {
      parts = undefined
      miss.drop('failed')
    }
  }

  async function* recording(): AsyncGenerator<string | Uint8Array> {
    for await (const part of stream.parts) {
      take(part)
      yield part
    }
  }

  return {
    ...stream,
    parts: recording(),
    end(usage) {
      const last = stream.end(usage)
      if (last !== '') take(last)
      if (parts) miss.put(parts)
      return last
    },
    fail(error) {
      parts = undefined
      miss.drop('failed')
      return stream.fail(error)
    },
  }
}
