/** Finds the texts of what an MCP server and its client send to each other, for guards. */
import { type GuardedText, jsonAt, textAt } from '../../calls/guards/content.ts'
import { isRecord } from '../../kit/json.ts'
import { McpRefusal } from '../../providers/mcp/upstream.ts'
import { GatewayError } from '../../spec/error.ts'

type Message = Record<string, unknown>

/** What of an error a server has written. */
export function errorTexts(thrown: unknown): GuardedText[] {
  if (thrown instanceof McpRefusal) return [...textAt(thrown, 'message'), ...jsonAt(thrown, 'data')]
  return thrown instanceof GatewayError && thrown.code === 'bad_upstream_response' ? textAt(thrown, 'message') : []
}

/** Whatever of a result a model may read: of tools, resources, prompts and completions. */
export function resultTexts(result: Message): GuardedText[] {
  const { content, contents, messages, completion } = result
  const blocks = [content, contents, messages].flat().flatMap((one) => (isRecord(one) ? [one] : []))
  const inMessages = blocks.flatMap((one) => one.content ?? []).filter(isRecord)
  return [
    ...[...blocks, ...inMessages].flatMap(blockTexts),
    ...textAt(result, 'description'),
    ...jsonAt(result, 'structuredContent'),
    ...jsonAt(result, '_meta'),
    ...(isRecord(completion) ? jsonAt(completion, 'values') : []),
  ]
}

const BLOCK_MEMBERS = ['text', 'uri', 'name', 'title', 'description', 'content', 'mimeType']

/** Media are not read, but text in base64 is, whatever its type is said to be. */
const blockTexts = (block: Message): GuardedText[] => [
  ...BLOCK_MEMBERS.flatMap((key) => textAt(block, key)),
  ...jsonAt(block, '_meta'),
  ...(isRecord(block.resource) ? blockTexts(block.resource) : []),
  ...(typeof block.blob === 'string' && !MEDIA_TYPE.test(String(block.mimeType ?? '')) ? base64At(block) : []),
]

/** All members but these. */
const memberTexts = (holder: Message, but: readonly string[]): GuardedText[] =>
  Object.keys(holder).flatMap((key) => (but.includes(key) ? [] : jsonAt(holder, key)))

/** Words of the protocol are no texts: the SDK has checked them. */
export const logTexts = (log: Message): GuardedText[] => memberTexts(log, ['level'])

/** Of a request of a server to the client. */
export const questionTexts = (method: string, params: Message): GuardedText[] =>
  method === 'elicitation/create'
    ? memberTexts(params, ['mode'])
    : [...memberTexts(params, ['messages', 'includeContext']), ...[params.messages].flat().flatMap(turnTexts)]

/** Of what the client answers. */
export const answerTexts = (method: string, answer: Message): GuardedText[] =>
  method === 'elicitation/create' ? memberTexts(answer, ['action']) : turnTexts(answer)

const turnTexts = (turn: unknown): GuardedText[] =>
  isRecord(turn) ? [...partTexts(turn), ...memberTexts(turn, ['content', 'role'])] : []

/** Of the content of a message, or of the result of a tool in it. */
const partTexts = ({ content }: Message): GuardedText[] =>
  [content].flat().flatMap((block) => {
    if (!isRecord(block)) return []
    const isMedia = block.type === 'image' || block.type === 'audio'
    return [...blockTexts(block), ...memberTexts(block, isMedia ? [...READ, 'data'] : READ), ...partTexts(block)]
  })

/** What blockTexts has read. */
const READ = [...BLOCK_MEMBERS, 'type', 'content', '_meta', 'resource', 'blob']

/** An image of SVG is text. */
const MEDIA_TYPE = /^\s*(image|audio|video)\/(?!.*xml)/i
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** None where it is no UTF-8. */
function base64At(block: Message): GuardedText[] {
  const read = () => UTF8.decode(Buffer.from(String(block.blob), 'base64'))
  try {
    if (read() === '') return []
  } catch {
    return []
  }
  return [
    {
      get text() {
        return read()
      },
      set text(text: string) {
        block.blob = Buffer.from(text, 'utf8').toString('base64')
      },
    },
  ]
}
