/** The protocols of services that guards ask: Presidio, Azure AI Content Safety, Bedrock Guardrails and Lakera Guard. */
import type { Verdict } from '../calls/guards/guard.ts'
import type { GuardConfig, GuardFormat } from '../config/schema/guard-schema.ts'
import { isRecord, type JsonRecord } from '../kit/json.ts'

type Question = { config: GuardConfig; on: string; texts: readonly string[] }
/** Posts a body to the service, and reads its answer. */
type Post = (body: object) => Promise<unknown>
type Format = {
  keyHeader(key: string): Record<string, string>
  decide(question: Question, post: Post): Promise<Verdict>
}

const BLOCK: Verdict = { action: 'block' }
const PASS: Verdict = { action: 'pass' }
const verdictOf = (isBlocked: boolean): Verdict => (isBlocked ? BLOCK : PASS)
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const azureKey = (key: string) => ({ 'ocp-apim-subscription-key': key })

/** Texts that are sent as one: nothing can be found across this. */
const SEPARATOR = '\n\n'
/** Azure's own limit, https://learn.microsoft.com/azure/ai-services/content-safety/overview#input-requirements */
const AZURE_CHARACTERS = 10_000
const LOW_SURROGATE = /[\udc00-\udfff]/
/** Of a piece and the next one, so that what is cut stands in one of them. */
const OVERLAP = 500
const MAX_PIECES = 100
/** Of Azure's four levels 0, 2, 4 and 6: what it calls medium. */
const DEFAULT_SEVERITY = 4

export const GUARD_SERVICES: Record<GuardFormat, Format> = {
  // https://microsoft.github.io/presidio/api-docs/api-docs.html: its offsets count code points.
  presidio: {
    keyHeader: bearer,
    async decide({ config: { language = 'en', categories, threshold, action }, texts }, post) {
      const text = texts.join(SEPARATOR)
      const length = [...text].length
      const more = {
        ...(categories && { entities: categories }),
        ...(threshold !== undefined && { score_threshold: threshold }),
      }
      const found = listOf(await post({ text, language, ...more }), 'entities').map((one) => ({
        start: numberAt(one, 'start'),
        end: numberAt(one, 'end'),
        type: textAt(one, 'entity_type'),
      }))
      if (found.some(({ start, end }) => !(start >= 0 && start < end && end <= length)))
        throw new Error('no place in the text')
      if (action !== 'replace') return verdictOf(found.length > 0)
      return found.length === 0 ? PASS : { action: 'replace', texts: withoutSpans(texts, found) }
    },
  },

  azure_text: {
    keyHeader: azureKey,
    async decide({ config: { categories, severity = DEFAULT_SEVERITY }, texts }, post) {
      const answers = await askPieces(texts, (text) => post({ text, ...(categories && { categories }) }))
      const isFound = answers.map((answer) => {
        const lists = isRecord(answer) ? answer.blocklistsMatch : undefined
        const scores = listOf(isRecord(answer) && answer.categoriesAnalysis, 'categoriesAnalysis')
        return (Array.isArray(lists) && lists.length > 0) || scores.some((one) => numberAt(one, 'severity') >= severity)
      })
      return verdictOf(isFound.includes(true))
    },
  },

  azure_shields: {
    keyHeader: azureKey,
    async decide({ texts }, post) {
      const answers = await askPieces(texts, (userPrompt) => post({ userPrompt, documents: [] }))
      return verdictOf(
        answers.map((answer) => flagAt(isRecord(answer) && answer.userPromptAnalysis, 'attackDetected')).includes(true),
      )
    },
  },

  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html
  bedrock: {
    keyHeader: bearer,
    async decide({ on, texts }, post) {
      const content = texts.map((text) => ({ text: { text } }))
      const answer = await post({ source: on === 'input' ? 'INPUT' : 'OUTPUT', content })
      if (!isRecord(answer)) throw new Error('no answer')
      if (answer.action === 'NONE') return PASS
      if (answer.action !== 'GUARDRAIL_INTERVENED') throw new Error('no action')
      // Where values are masked, there is an output for each text; where it blocks, its own message.
      const masked = (Array.isArray(answer.outputs) ? answer.outputs : []).map((one) => isRecord(one) && one.text)
      const isMasked = has(answer.assessments, 'ANONYMIZED') && !has(answer.assessments, 'BLOCKED')
      const areTexts = masked.length === texts.length && masked.every((text) => typeof text === 'string')
      return isMasked && areTexts ? { action: 'replace', texts: masked } : BLOCK
    },
  },

  // https://docs.lakera.ai/docs/api/guard
  lakera: {
    keyHeader: bearer,
    async decide({ config: { project }, on, texts }, post) {
      const role = on === 'input' ? 'user' : 'assistant'
      // As one: of several, it screens the last interaction only.
      const messages = [{ role, content: texts.join(SEPARATOR) }]
      return verdictOf(flagAt(await post({ messages, ...(project && { project_id: project }) }), 'flagged'))
    },
  },
}

type Signed = { aws: NonNullable<GuardConfig['aws']>; url: string; body: string; now_ms: number }

/** Signature version 4 of AWS. */
export async function awsHeaders({ aws, url, body, now_ms }: Signed): Promise<Record<string, string>> {
  const { AwsV4Signer } = await import('aws4fetch')
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, session_token: sessionToken, region } = aws
  const datetime = new Date(now_ms).toISOString().replace(/[:-]|\.\d{3}/g, '')
  const key = { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  const signer = new AwsV4Signer({ ...key, service: 'bedrock', region, method: 'POST', url, body, datetime })
  const { host: _, ...headers } = Object.fromEntries((await signer.sign()).headers)
  return headers
}

function has(value: unknown, action: string): boolean {
  if (Array.isArray(value)) return value.some((one) => has(one, action))
  return isRecord(value) && (value.action === action || Object.values(value).some((one) => has(one, action)))
}

async function askPieces(texts: readonly string[], ask: (text: string) => Promise<unknown>): Promise<unknown[]> {
  const text = texts.join(SEPARATOR)
  const pieces: string[] = []
  // Half of a character is no text that the service could read.
  const cut = (at: number) => (LOW_SURROGATE.test(text.charAt(at)) ? at - 1 : at)
  for (let at = 0, end = 0; end < text.length; at = cut(end - OVERLAP)) {
    end = cut(at + AZURE_CHARACTERS)
    pieces.push(text.slice(at, end))
  }
  if (pieces.length > MAX_PIECES) throw new Error('too long')
  return await Promise.all(pieces.map(ask))
}

type Found = { start: number; end: number; type: string }

/** Each text with the names of types in place of what was found. Spans that overlap are one, with the name of the first. */
function withoutSpans(texts: readonly string[], found: readonly Found[]): string[] {
  const spans: Found[] = []
  for (const span of found.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = spans.at(-1)
    if (last && span.start < last.end) last.end = Math.max(last.end, span.end)
    else spans.push({ ...span })
  }
  let from = 0
  return texts.map((text) => {
    const characters = [...text]
    const to = from + characters.length
    let out = ''
    let at = from
    for (const { start, end, type } of spans) {
      if (end <= from || start >= to) continue
      out += `${characters.slice(at - from, Math.max(start, from) - from).join('')}<${type}>`
      at = Math.min(end, to)
    }
    out += characters.slice(at - from).join('')
    from = to + SEPARATOR.length
    return out
  })
}

/** Throws Error where the service has answered otherwise than documented. */
function listOf(value: unknown, what: string): JsonRecord[] {
  if (Array.isArray(value) && value.every(isRecord)) return value
  throw new Error(`no ${what}`)
}

function flagAt(value: unknown, name: string): boolean {
  const flag = isRecord(value) ? value[name] : undefined
  if (typeof flag === 'boolean') return flag
  throw new Error(`no ${name}`)
}

function numberAt(value: JsonRecord, name: string): number {
  const number = value[name]
  if (typeof number === 'number') return number
  throw new Error(`no ${name}`)
}

function textAt(value: JsonRecord, name: string): string {
  const text = value[name]
  if (typeof text === 'string') return text
  throw new Error(`no ${name}`)
}
