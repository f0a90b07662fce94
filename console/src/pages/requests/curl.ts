/** Writes the command that makes a request of the log again, as far as the log knows it. */

export type CurlRequest = {
  method?: string | undefined
  path?: string | undefined
  family: string
  model: string
  requested_model?: string | undefined
  stream?: boolean | undefined
  session?: string | null | undefined
  end_user?: string | null | undefined
  tags?: readonly string[] | undefined
  metadata?: Record<string, string> | undefined
}

type Part = { type: string; id?: string | undefined; name?: string | undefined; text?: string | undefined }
export type CurlMessage = { role: string; parts: readonly Part[] }

const PATH_OF: Record<string, string> = {
  chatcompat: '/v1/chat/completions',
  'chatcompat-response': '/v1/responses',
  'messages-compat': '/v1/messages',
  embeddings: '/v1/embeddings',
  rerank: '/v1/rerank',
  moderations: '/v1/moderations',
  'audio-speech': '/v1/audio/speech',
  'audio-transcription': '/v1/audio/transcriptions',
  'image-generation': '/v1/images/generations',
  'video-generation': '/v1/videos',
  '3d-generation': '/v1/3d/generations',
}
const UNKNOWN = '…'

/** Bash, in which nothing of the request is code. The token is an environment variable, which is never in the console. */
export function curlOf(request: CurlRequest, origin: string, input: readonly CurlMessage[] = []): string {
  const { method = 'POST', path = PATH_OF[request.family] ?? '/v1/chat/completions' } = request
  const lines = [`curl ${quote(origin + path)}`]
  if (method !== 'POST' && method !== 'GET') lines.push(`-X ${quote(method)}`)
  lines.push('-H "Authorization: Bearer $GATEHOUSE_TOKEN"')
  const { session, tags = [], metadata = {} } = request
  if (session) lines.push(`-H ${quote(`x-gatehouse-session: ${session}`)}`)
  // Pairs of metadata are tags too, but stand in the body.
  const own = tags.filter((tag) => !Object.entries(metadata).some(([key, value]) => `${key}:${value}` === tag))
  if (own.length > 0) lines.push(`-H ${quote(`x-gatehouse-tags: ${own.join(',')}`)}`)
  if (method !== 'GET') {
    lines.push("-H 'content-type: application/json'")
    lines.push(`-d ${quote(JSON.stringify(bodyOf(request, input), null, 2))}`)
  }
  return lines.join(' \\\n  ')
}

/** A word of bash: only the quote itself is special between quotes. Control characters of the terminal are left out. */
export function quote(text: string): string {
  const shown = [...text].filter((one) => one === '\n' || one === '\t' || !/\p{Cc}/u.test(one)).join('')
  return `'${shown.replaceAll("'", `'\\''`)}'`
}

function bodyOf(request: CurlRequest, input: readonly CurlMessage[]): Record<string, unknown> {
  const model = request.requested_model ?? request.model
  const { stream, end_user, metadata } = request
  const rest = {
    ...(stream && { stream: true }),
    ...(metadata && Object.keys(metadata).length > 0 && { metadata }),
  }
  const messages = input.map(({ role, parts }) => ({ role, content: textOf(parts) }))
  switch (request.family) {
    case 'messages-compat': {
      const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
      const others = messages.filter(({ role }) => role !== 'system')
      return {
        model,
        max_tokens: 1024,
        ...(system.length > 0 && { system: system.join('\n\n') }),
        ...turns(others),
        ...rest,
      }
    }
    case 'contentgen-compat':
      return {
        contents: (messages.length > 0 ? messages : [{ role: 'user', content: UNKNOWN }]).map(({ role, content }) => ({
          role: role === 'assistant' ? 'model' : 'user',
          parts: [{ text: content }],
        })),
      }
    case 'chatcompat-response':
      return { model, input: messages.length > 0 ? messages : UNKNOWN, ...rest }
    case 'embeddings':
    case 'moderations':
      return { model, input: messages[0]?.content ?? UNKNOWN }
    case 'rerank':
      return { model, query: messages[0]?.content ?? UNKNOWN, documents: [UNKNOWN] }
    case 'chatcompat':
      return { model, ...turns(messages), ...rest, ...(end_user && { user: end_user }) }
    default:
      return { model, prompt: messages[0]?.content ?? UNKNOWN }
  }
}

const turns = (messages: { role: string; content: string }[]) => ({
  messages: messages.length > 0 ? messages : [{ role: 'user', content: UNKNOWN }],
})

/** What is no text, such as an image, is not recorded: its kind stands for it. */
const textOf = (parts: readonly Part[]): string => parts.map(({ type, text }) => text ?? `[${type}]`).join('\n')
