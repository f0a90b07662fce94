/** `POST /v1/completions`: the legacy completions API, for every chat model. */
import { bodyLimits, readJson } from '../../../http/body.ts'
import type { Context, Route } from '../../../http/context.ts'
import { jsonResponse } from '../../../http/live.ts'
import { parseTextCompletion, type TextCompletionInput } from '../../../protocols/chatcompat/client/text-request.ts'
import { withRoutingFields } from '../../../spec/routing-fields.ts'
import { TextCompletion, TextCompletionChunk, TextCompletionRequest } from '../../../spec/text-completion.ts'
import { readUserField, requestedModel, takeRoutingFields } from '../../shared/call-options.ts'
import { callStream } from '../../shared/event-stream.ts'
import { createTextCompletions } from '../text-completions.ts'
import { CHAT_ERRORS, type ChatRouteParts } from './chat-route.ts'

export function textCompletionsRoute(parts: ChatRouteParts): Route {
  const { pipeline, chat, settings, clock } = parts
  const family = 'chatcompat'
  const completions = createTextCompletions(chat, clock)

  async function whole(input: TextCompletionInput, context: Context): Promise<Response> {
    const prepared = pipeline.prepare(completions.whole, context, input)
    const { answer, usage } = await prepared.send()
    return jsonResponse(answer.encode(usage), { context, clock, headers: prepared.headers })
  }

  function streamed(input: TextCompletionInput, context: Context): Promise<Response> {
    const { headers, send } = pipeline.prepareStream(completions.stream, context, input)
    return callStream(send(), context, { headers, settings, clock })
  }

  return {
    method: 'POST',
    path: '/v1/completions',
    operation: {
      summary: 'Create a text completion',
      description:
        'The legacy API for programs that do not know chats: each prompt is the one message of a chat. With `stream: true` ' +
        'the answer is a stream of server-sent events, ended by `data: [DONE]`.',
      tag: 'Chat',
      request: withRoutingFields(TextCompletionRequest),
      response: TextCompletion,
      stream: TextCompletionChunk,
      errors: CHAT_ERRORS,
      example: { model: 'sandbox/general', prompt: 'What is Gatehouse?', max_tokens: 100 },
    },
    async handle(context) {
      const body = await readJson(context.request, bodyLimits(context, 'text', { settings, clock }))
      context.noteFields(body)
      pipeline.authorize(context, { family, model: requestedModel(body) })
      readUserField(context, body, family)
      const input = parseTextCompletion(takeRoutingFields(body, context, parts))
      return await (input.requests[0]?.stream ? streamed(input, context) : whole(input, context))
    },
  }
}
