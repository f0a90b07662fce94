/** Responses with the `openai` package; the same code for all majors. */
import type OpenAI from 'openai'
import type { ChatInput, Client, Reply, Turn, Watch } from '../types.ts'
import { openaiFault, openaiModels } from './openai-chat.ts'

type Sdk = typeof OpenAI
type Response = OpenAI.Responses.Response

/** `Sdk` is the class of the major version, which identifies its errors. */
export function openaiResponses(Sdk: Sdk, { origin, token }: { origin: string; token: string }): Client {
  const client = new Sdk({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0, logLevel: 'off' })
  const { responses } = client
  return {
    whole: async (chatInput) => replyOf(await responses.create(paramsOf(chatInput))),
    stream: (chatInput, watch) => read(client, chatInput, watch),
    collected: async (chatInput) =>
      replyOf(await responses.stream({ ...paramsOf(chatInput), stream: true }).finalResponse()),
    parsed: async (chatInput) => (await responses.parse(paramsOf(chatInput))).output_parsed,
    async stored({ model, turns }, next) {
      const first = await responses.create({ model, input: turns.flatMap(itemsOf), store: true })
      const second = await responses.create({ model, input: next, previous_response_id: first.id, store: true })
      const found = await responses.retrieve(second.id)
      const itemCount: unknown[] = []
      for await (const item of responses.inputItems.list(second.id)) itemCount.push(item)
      for (const { id } of [first, second]) await responses.delete(id)
      const deletedError = await responses.retrieve(second.id).catch((error: unknown) => error)
      return { reply: replyOf(second), found: replyOf(found), itemCount: itemCount.length, deletedError }
    },
    // The oldest major does not have it.
    ...('inputTokens' in responses
      ? {
          count: async ({ model, turns }: ChatInput) =>
            (await responses.inputTokens.count({ model, input: turns.flatMap(itemsOf) })).input_tokens,
        }
      : {}),
    list: () => openaiModels(client),
    retrieve: async (model) => (await client.models.retrieve(model)).id,
    fault: (error, status) => openaiFault(Sdk, error, status),
  }
}

function paramsOf(chatInput: ChatInput): OpenAI.Responses.ResponseCreateParamsNonStreaming {
  const { model, system, turns, tools, tool_choice, schema, is_thinking, max_tokens, temperature } = chatInput
  return {
    model,
    input: turns.flatMap(itemsOf),
    // Nothing is stored, so reasoning is returned to the client and sent back.
    store: false,
    include: ['reasoning.encrypted_content'],
    ...(system ? { instructions: system } : {}),
    ...(tools ? { tools: tools.map((one) => ({ type: 'function', strict: true, ...one })) } : {}),
    ...(tool_choice ? { tool_choice } : {}),
    ...(schema ? { text: { format: { type: 'json_schema', name: 'place', strict: true, schema } } } : {}),
    ...(is_thinking ? { reasoning: { effort: 'high', summary: 'auto' } } : {}),
    ...(max_tokens === undefined ? {} : { max_output_tokens: max_tokens }),
    ...(temperature === undefined ? {} : { temperature }),
  }
}

function itemsOf(turn: Turn): OpenAI.Responses.ResponseInputItem[] {
  if (turn.role === 'assistant') return turn.reply.own as OpenAI.Responses.ResponseInputItem[]
  if (turn.role === 'results') {
    return turn.results.map(({ id, text }) => ({ type: 'function_call_output', call_id: id, output: text }))
  }
  if (!turn.picture) return [{ role: 'user', content: turn.text }]
  const image_url = `data:${turn.picture.media_type};base64,${turn.picture.data}`
  const content = [
    { type: 'input_text' as const, text: turn.text },
    { type: 'input_image' as const, image_url, detail: 'auto' as const },
  ]
  return [{ role: 'user', content }]
}

function replyOf(response: Response): Reply {
  const { output, status, incomplete_details, usage, model } = response
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [{ id: item.call_id, name: item.name, args: JSON.parse(item.arguments) }] : [],
  )
  const thoughts = output.flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : []))
  return {
    text: textOf(output),
    ...(thoughts.length > 0 ? { reasoning: thoughts.join('') } : {}),
    calls,
    finish: finishOf(status, incomplete_details?.reason, calls.length),
    usage: usage && usageOf(usage),
    model,
    own: output,
  }
}

const textOf = (output: Response['output']): string =>
  output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('')

function finishOf(status: Response['status'], reason: string | undefined, calls: number): Reply['finish'] {
  if (status === 'incomplete') return reason === 'max_output_tokens' ? 'length' : 'other'
  if (status !== 'completed') return 'other'
  return calls > 0 ? 'tool_calls' : 'stop'
}

function usageOf(usage: NonNullable<Response['usage']>): Reply['usage'] {
  const { input_tokens: input, output_tokens: output, total_tokens } = usage
  if (total_tokens !== input + output) throw new Error(`The total ${total_tokens} is not ${input} and ${output}.`)
  return {
    input,
    output,
    cached: usage.input_tokens_details.cached_tokens,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  }
}

/** Event by event: the numbers increase by one, and the pieces add up to the last event. */
async function read(client: OpenAI, chatInput: ChatInput, { signal, onText }: Watch = {}): Promise<Reply> {
  const running = await client.responses.create({ ...paramsOf(chatInput), stream: true }, { signal: signal ?? null })
  let text = ''
  let thought = ''
  let count = 0
  const inputs = new Map<string, string>()
  let last: Response | undefined
  for await (const event of running) {
    if (event.sequence_number !== count) throw new Error(`Event ${count} has the number ${event.sequence_number}.`)
    count++
    if (event.type === 'response.reasoning_summary_text.delta') thought += event.delta
    if (event.type === 'response.function_call_arguments.delta')
      inputs.set(event.item_id, `${inputs.get(event.item_id) ?? ''}${event.delta}`)
    if (event.type === 'response.failed') throw new Error(event.response.error?.message ?? 'failed')
    if (event.type === 'error') throw new Error(event.message)
    if (event.type === 'response.completed' || event.type === 'response.incomplete') last = event.response
    if (event.type !== 'response.output_text.delta') continue
    text += event.delta
    onText?.(event.delta)
  }
  if (signal?.aborted) return { text, calls: [], finish: 'other', usage: undefined, own: undefined }
  if (!last) throw new Error('The stream ended without its last event.')
  const reply = replyOf(last)
  const calls = last.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
  const isWhole =
    reply.text === text &&
    (reply.reasoning ?? '') === thought &&
    calls.every(({ id, arguments: said }) => inputs.get(id ?? '') === said)
  if (!isWhole) throw new Error('The pieces are not the whole.')
  return reply
}
