/**
 * The fields with which a request of a chat API asks for other models and for some providers, as OpenRouter has them.
 * https://openrouter.ai/docs/guides/routing/model-fallbacks, https://openrouter.ai/docs/guides/routing/provider-selection
 */
import Type, { type TObject, type TProperties } from 'typebox'
import { flag, list, number, oneOf } from './fields.ts'

const MAX_MODELS = 10
const MAX_PROVIDERS = 20

const names = (description: string) =>
  list(Type.String({ minLength: 1, maxLength: 200 }), { minItems: 1, maxItems: MAX_PROVIDERS }, description)
const price = (description: string) => number({ minimum: 0 }, description)

export const ROUTING_FIELDS = {
  models: list(
    Type.String({ minLength: 1 }),
    { minItems: 1, maxItems: MAX_MODELS },
    'Models that serve the request, in this order, where `model` is unavailable, its context too short, or the content rejected. Without `model` the first of them is it.',
  ),
  provider: Type.Optional(
    Type.Object(
      {
        order: names('Ids of providers to try first, in this order.'),
        only: names('Ids of the only providers that may serve the request.'),
        ignore: names('Ids of providers that may not.'),
        allow_fallbacks: flag(
          'false: only the providers of `order`; without `order`, only that of the first try. Default true.',
        ),
        sort: oneOf(
          ['price', 'latency'],
          'The cheapest provider first, or that with the shortest time to its first byte.',
        ),
        max_price: Type.Optional(
          Type.Object(
            { prompt: price('Per million input tokens.'), completion: price('Per million output tokens.') },
            { description: 'The most that a provider may charge; those without a known price are left out.' },
          ),
        ),
      },
      { description: 'Which providers may serve the request.' },
    ),
  ),
}

/** The same request with these fields, for its documentation: they are read before the request is. */
export const withRoutingFields = <Properties extends TProperties>({ properties, ...schema }: TObject<Properties>) => ({
  ...schema,
  properties: { ...properties, ...ROUTING_FIELDS },
})
