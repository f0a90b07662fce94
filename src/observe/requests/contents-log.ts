/** Records the contents of calls, off their path: redacted, then encrypted, then written in batches. */
import type { Config } from '../../config/config.ts'
import { type ContentsConfig, mayRecordContents } from '../../config/schema/request-log-schema.ts'
import { type BatchHealth, BatchQueue } from '../../kit/batch-queue.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import { openSealed, type SealingKey, sealingKey, sealText } from '../../kit/sealed-text.ts'
import type { Capture } from '../../protocols/shared/capture.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Caller, LogContents } from '../../spec/token.ts'
import type { ContentsRow, RequestContentsStore } from '../../store/requests/contents-row.ts'
import type { RequestRow } from '../../store/requests/request-row.ts'
import { type Contents, contentsOf, MARGIN_CHARACTERS, redactContents } from './captured-contents.ts'
import { createRedaction, type Redact } from './redaction.ts'
import type { AssignIds } from './request-log.ts'

const CONTENTS_HEADER = 'x-gatehouse-log-contents'

const FLUSH_MILLISECONDS = 480
const ROWS_PER_WRITE = 20
const MAX_QUEUED = 20_000
const WRITE_MILLISECONDS = 10_000
const BUILT_IN = ['cards', 'ibans', 'email', 'phones', 'secrets'] as const

/** The part of a request that is needed, once its caller is known. */
type Arrived = {
  caller: Pick<Caller, 'token_id' | 'project_id' | 'project'>
  capture?: Capture | undefined
  header(name: string): string | null
}

export type ContentsLog = {
  /** Whether the settings may record anything. Where they do not, and the project of the caller has none of its own, `admit` has no effect. */
  mayRecord: boolean
  reloaded(): void
  /** Marks the call of a request whose contents are to be recorded. Throws where its caller asks for what it may not. */
  admit(context: Arrived): void
  add(capture: Capture, row: RequestRow): void
  /** `characters`: of the text in memory. */
  health(): BatchHealth & { characters: number }
  prune(): Promise<boolean>
  flush(): Promise<void>
  close(options: { deadline_ms: number }): Promise<void>
}

type ContentsLogParts = {
  store: Pick<RequestContentsStore, 'append' | 'prune'>
  assignIds: AssignIds
  /** Read at each use. */
  config(): Pick<Config, 'request_log' | 'contents_key'>
  clock: Clock
  log: Log
}

const NONE: ContentsConfig = {}

/** Its text is replaced by the encrypted one at the first attempt to write it. */
type Queued = { row: RequestRow; contents: Contents | undefined; sealed?: ContentsRow; characters: number }

export function createContentsLog({ store, assignIds, config, clock, log }: ContentsLogParts): ContentsLog {
  let [characters, dropped] = [0, 0]
  let isWarned = false
  const mayRecordNow = () => mayRecordContents(config().request_log.contents ?? NONE)
  let redaction: { settings: ContentsConfig; redact: Promise<Redact> } | undefined
  const queue = new BatchQueue<Queued>({
    name: 'contents of the request log',
    async write(batch) {
      await assignIds(batch.map(({ row }) => row))
      const rows: ContentsRow[] = []
      for (const item of batch) {
        if (!item.sealed) {
          item.sealed = await sealed(item)
          item.contents = undefined
          // Patterns are slow on long texts: calls go on between two of them.
          await new Promise(setImmediate)
        }
        rows.push(item.sealed)
      }
      await store.append(rows)
      // Once: a write that took too long is repeated, and may end all the same.
      for (const item of batch) {
        characters -= item.characters
        item.characters = 0
      }
      return 0
    },
    max_queued: MAX_QUEUED,
    max_batch: ROWS_PER_WRITE,
    every_ms: FLUSH_MILLISECONDS,
    timeout_ms: WRITE_MILLISECONDS,
    clock,
    log,
  })

  async function sealed({ row, contents }: Queued): Promise<ContentsRow> {
    const { request_log, contents_key = '' } = config()
    const key = sealingKey(contents_key)
    if (!key || !contents) throw new Error('There is no key for contents.')
    const settings = request_log.contents ?? {}
    if (redaction?.settings !== settings) {
      redaction = { settings, redact: createRedaction(settings.redact ?? BUILT_IN, settings.patterns ?? []) }
    }
    const clean = redactContents(contents, await redaction.redact, maxCharacters(settings))
    const { row_id, at_ms, project_id, end_user } = row
    return { row_id, at_ms, project_id, end_user, ...sealText(JSON.stringify(clean), key, boundTo(row)) }
  }

  return {
    mayRecord: mayRecordNow(),
    reloaded() {
      this.mayRecord = mayRecordNow()
    },
    admit(context) {
      const { request_log, contents_key } = config()
      const { contents = NONE } = request_log
      const own = context.caller.project?.log_contents
      if (own === undefined && !mayRecordContents(contents)) return
      if (!isOn(context, contents, own)) return
      if (contents_key === undefined || !request_log.enabled) {
        if (!isWarned)
          log.error('contents of a project are not recorded: they need GATEHOUSE_CONTENTS_KEY and request_log.enabled')
        isWarned = true
        return
      }
      const max_characters = maxCharacters(contents) + MARGIN_CHARACTERS
      const spans = context.capture?.max_characters ?? 0
      context.capture = {
        max_characters: Math.max(max_characters, spans),
        span_characters: spans,
        is_recorded: true,
      }
    },
    add(capture, row) {
      const max = (config().request_log.contents?.max_queued_megabytes ?? 16) * 1_000_000
      const found = contentsOf(capture)
      if (!found.contents.output && found.contents.input.length === 0) return
      if (characters + found.characters > max || queue.health().queued >= MAX_QUEUED) {
        if (dropped++ === 0) log.error('contents of requests are dropped: they are not written fast enough')
        return
      }
      characters += found.characters
      queue.push({ row, ...found })
    },
    health() {
      const health = queue.health()
      return { ...health, dropped: health.dropped + dropped, characters }
    },
    prune() {
      const { contents, keep_days } = config().request_log
      const days = Math.min(contents?.keep_days ?? 7, keep_days)
      return store.prune((unixSeconds(clock) - days * 86_400) * 1000)
    },
    flush: () => queue.flush(),
    close: (options) => queue.close(options),
  }
}

const maxCharacters = ({ max_kilobytes = 64 }: ContentsConfig): number => max_kilobytes * 1_000

/** So that no text can be put in the place of another. */
const boundTo = ({ row_id, request_id }: { row_id: number; request_id: string }): string =>
  `gatehouse contents ${row_id} ${request_id}`

/** `own`: what is set for the project of the caller, which counts before the lists. */
function isOn(context: Arrived, { on_for = [], by_header_for = [] }: ContentsConfig, own?: LogContents): boolean {
  const { caller } = context
  const given = context.header(CONTENTS_HEADER)
  if (given === null) return own ? own === 'on' : includes(on_for, caller)
  if (given !== 'on' && given !== 'off') {
    throw new GatewayError('invalid_value', `The header ${CONTENTS_HEADER} must be on or off.`)
  }
  if (own ? own === 'header' : includes(by_header_for, caller)) return given === 'on'
  throw new GatewayError(
    'unsupported_parameter',
    `The header ${CONTENTS_HEADER} is not supported: the operator of this gateway does not let this token decide whether contents are recorded.`,
  )
}

const includes = (list: readonly string[], { token_id, project_id }: Arrived['caller']): boolean =>
  list.includes('*') || list.includes(token_id) || (project_id !== undefined && list.includes(project_id))

/** The keys of the configuration, the current one first. */
export const contentsKeys = ({ contents_key, contents_key_old }: Pick<Config, 'contents_key' | 'contents_key_old'>) =>
  [contents_key, contents_key_old].flatMap((text) => (text === undefined ? [] : (sealingKey(text) ?? [])))

type OpenParts = { store: Pick<RequestContentsStore, 'find'>; keys: readonly SealingKey[] }

/** The contents of a row of the request log; undefined: none are stored. Throws contents_unreadable. */
export async function readContents(
  { row_id, request_id }: { row_id: number; request_id: string },
  { store, keys }: OpenParts,
): Promise<(Contents & { key_id: string }) | undefined> {
  const found = await store.find(row_id)
  if (!found) return undefined
  const opened = openSealed(found, keys, boundTo({ row_id, request_id }))
  if (typeof opened === 'object') return { ...(JSON.parse(opened.text) as Contents), key_id: found.key_id }
  throw new GatewayError(
    'contents_unreadable',
    opened === 'changed'
      ? 'The contents were changed in the store: they cannot be decrypted.'
      : `The contents are encrypted with the key ${found.key_id}, which the gateway does not have: give it as GATEHOUSE_CONTENTS_KEY or GATEHOUSE_CONTENTS_KEY_OLD.`,
  )
}
