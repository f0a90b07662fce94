/** The route of a JSON endpoint: reads the body, authorizes, decodes, runs the call and responds. */
import type { JsonEndpoint } from '../../calls/endpoint.ts'
import type { AnyMeter } from '../../calls/family.ts'
import type { Pipeline } from '../../calls/pipeline.ts'
import type { ServerSettings } from '../../config/config.ts'
import { bodyLimits, readJson } from '../../http/body.ts'
import type { Route } from '../../http/context.ts'
import { jsonResponse } from '../../http/live.ts'
import type { Clock } from '../../kit/clock.ts'
import { memberOf } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import { readMetadata, readUserField } from './call-options.ts'

/** `settings` are read at each request, since a reload changes them. */
export type RouteParts = { pipeline: Pipeline; settings: ServerSettings; clock: Clock }

export function jsonRoute<Input, Work, Answer, M extends AnyMeter>(
  {
    family,
    endpoint,
    contents = 'text',
    decode,
    encode,
    errorForClient,
    ...described
  }: JsonEndpoint<Input, Work, Answer, M>,
  { pipeline, settings, clock }: RouteParts,
): Route {
  return {
    ...described,
    method: 'POST',
    async handle(context) {
      const body = await readJson(context.request, bodyLimits(context, contents, { settings, clock }))
      context.noteFields(body)
      pipeline.authorize(context, { family: endpoint, model: context.params.model ?? memberOf(body, 'model') })
      readUserField(context, body, endpoint)
      readMetadata(context, body, endpoint)
      const input = await decode(body, context)
      try {
        const prepared = pipeline.prepare(family, context, input)
        const { headers } = prepared
        const { answer, usage, model: served } = await prepared.send()
        return jsonResponse(encode({ input, answer, usage, model: served.id }, context), { context, clock, headers })
      } catch (thrown) {
        throw errorForClient && thrown instanceof GatewayError ? errorForClient(thrown) : thrown
      }
    },
  }
}
