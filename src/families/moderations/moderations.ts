/** The moderations family: separates the inputs, checks that the model accepts images, validates the results. */
import type { JsonEndpoint } from '../../calls/endpoint.ts'
import { type Family, jsonCodec } from '../../calls/family.ts'
import { textAt } from '../../calls/guards/content.ts'
import { createTextMeter, estimateTexts, type TextMeter } from '../../calls/text-meter.ts'
import type { Tokenizer } from '../../kit/tokenizer.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import type { Target } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type {
  ModerationInput,
  ModerationPart,
  ModerationRequest,
  ModerationResult,
} from '../../spec/moderation-request.ts'
import { partOf } from '../shared/provider-part.ts'

type ModerationWork = { inputs: ModerationInput[]; targets: Target[] }
export type ModerationsFamily = Family<ModerationRequest, ModerationWork, ModerationResult[], TextMeter>
export type ModerationsEndpoint = JsonEndpoint<ModerationRequest, ModerationWork, ModerationResult[], TextMeter>

export const createModerations = ({ tokenizer }: { tokenizer: Tokenizer }): ModerationsFamily => ({
  endpoint: () => 'moderations',
  modelOf: ({ model }) => model,
  fit(model, { input }) {
    const inputs = inputsOf(input)
    if (model.capabilities.image_input === false) refuseImages(model, inputs)
    return { inputs, targets: model.targets }
  },
  meter: ({ inputs }) => createTextMeter({ inputs: inputs.flatMap(textsOf), tokenizer }),
  estimate: ({ inputs }) => estimateTexts(inputs.flatMap(textsOf)),
  guarded: {
    input(work) {
      const inputs = work.inputs.map((input) =>
        typeof input === 'string' ? input : input.map((part) => ({ ...part })),
      )
      work.inputs = inputs
      return inputs.flatMap((input, at) =>
        typeof input === 'string'
          ? textAt(inputs, at)
          : input.flatMap((part) => (part.type === 'text' ? textAt(part, 'text') : [])),
      )
    },
  },
  texts: ({ inputs }) => inputs.flatMap(textsOf),
  policy: 'until_answered',
  targets: ({ targets }) => targets,
  async send(target, { inputs }, { call, signal, meter }) {
    const answer = await askOne(target, { inputs, request_id: call.request_id, signal })
    meter.reported(answer.prompt_tokens)
    return answer.results
  },
  cacheable: ({ inputs }) => ({ request: inputs, is_deterministic: true }),
  codec: jsonCodec(),
})

/** Parts without an image are joined to one text, one per line, which text-only models accept too. */
function inputsOf(input: ModerationRequest['input']): ModerationInput[] {
  if (typeof input === 'string') return [input]
  const texts = input.filter((item) => typeof item === 'string')
  if (texts.length > 0) return texts
  const parts = input.filter((item) => typeof item !== 'string')
  return [parts.some(({ type }) => type === 'image_url') ? parts : textsOf(parts).join('\n')]
}

const textsOf = (input: ModerationInput): string[] => (typeof input === 'string' ? [input] : input.flatMap(textOf))

const textOf = (part: ModerationPart): string[] => (part.type === 'text' ? [part.text] : [])

function refuseImages({ id }: CatalogueModel, inputs: ModerationInput[]): void {
  for (const input of inputs) {
    const index = typeof input === 'string' ? -1 : input.findIndex(({ type }) => type === 'image_url')
    if (index === -1) continue
    const message = `The model "${id}" classifies no images; send texts only.`
    throw new GatewayError('unsupported_parameter', message, { param: `input[${index}].image_url` })
  }
}

type Question = { inputs: ModerationInput[]; request_id: string; signal: AbortSignal }

async function askOne(target: Target, { inputs, request_id, signal }: Question) {
  const { model, provider } = target
  const moderations = partOf(target, 'moderations', 'serves no moderations')
  const answer = await moderations.moderate({ model, inputs, request_id }, signal)
  if (answer.results.length === inputs.length) return answer
  const message = `The upstream "${provider.id}" answered with ${answer.results.length} results for ${inputs.length} inputs.`
  throw new GatewayError('bad_upstream_response', message)
}
