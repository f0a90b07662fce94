/** The four chat APIs of clients: a request with a text, and how its answer and a blocked one read. */

export type ChatApi = {
  name: string
  path(stream: boolean): string
  body(text: string, stream: boolean): object
  /** The text of an answer, whole or as its events. */
  textOf(body: string): string
  /** How an answer ends that was blocked. */
  end: RegExp
}

// biome-ignore lint/suspicious/noExplicitAny: the answers of four APIs
export type Json = Record<string, any>

export const events = (body: string): Json[] =>
  body.startsWith('{')
    ? [JSON.parse(body)]
    : [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data as string))

export const CHAT_APIS: ChatApi[] = [
  {
    name: 'chat completions',
    path: () => '/v1/chat/completions',
    body: (text, stream) => ({ model: 'v/m', stream, messages: [{ role: 'user', content: text }] }),
    textOf: (body) =>
      events(body)
        .flatMap(({ choices = [] }) => choices)
        .map(({ message, delta }) => message?.content ?? delta?.content ?? '')
        .join(''),
    end: /"finish_reason":"content_filter"/,
  },
  {
    name: 'Responses',
    path: () => '/v1/responses',
    body: (text, stream) => ({ model: 'v/m', stream, input: text, store: false }),
    textOf: (body) =>
      body.startsWith('{')
        ? events(body)
            .flatMap(({ output }) => output)
            .flatMap(({ content }) => content ?? [])
            .map(({ text }) => text)
            .join('')
        : events(body)
            .map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : ''))
            .join(''),
    end: /"incomplete_details":\{"reason":"content_filter"\}/,
  },
  {
    name: 'Messages',
    path: () => '/v1/messages',
    body: (text, stream) => ({ model: 'v/m', stream, max_tokens: 100, messages: [{ role: 'user', content: text }] }),
    textOf: (body) =>
      events(body)
        .map(({ content, delta }) => content?.map(({ text }: { text: string }) => text).join('') ?? delta?.text ?? '')
        .join(''),
    end: /"stop_reason":"refusal"/,
  },
  {
    name: 'contentgen',
    path: (stream) => `/v1beta/models/v/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
    textOf: (body) =>
      events(body)
        .flatMap(({ candidates = [] }) => candidates)
        .flatMap(({ content }) => content?.parts ?? [])
        .map(({ text = '' }) => text)
        .join(''),
    end: /"finishReason":"SAFETY"/,
  },
]
