/** Images with the `ai` package, by each suitable provider. */
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import { generateImage, type ImageModel } from 'ai'
import { createGatehouse } from '../../../../packages/ai-sdk/src/gatehouse.ts'
import { aiFault } from '../../clients/ai.ts'
import type { FamilyRow, Gateway } from '../family.ts'
import type { Drawing, Drawn, Edit, ImagesClient } from '../types.ts'

type Provider = (id: string) => ImageModel

function clientOf(model: Provider): ImagesClient {
  async function make(params: Drawing, prompt: Parameters<typeof generateImage>[0]['prompt']): Promise<Drawn> {
    const { images, usage } = await generateImage({
      model: model(params.model),
      prompt,
      maxRetries: 0,
      ...(params.n ? { n: params.n } : {}),
      ...(params.size ? { size: params.size } : {}),
    })
    return { images: images.map(({ uint8Array }) => uint8Array), tokens: usage.totalTokens }
  }
  return {
    draw: (params) => make(params, params.prompt),
    edit: ({ image, mask, ...params }: Edit) =>
      make(params, { text: params.prompt, images: [image], ...(mask ? { mask } : {}) }),
    fault: aiFault,
  }
}

type Made = { provider: string; make(gateway: Gateway): Provider; has_no_masks?: true }

const MADE: Made[] = [
  {
    provider: '@ai-sdk/openai',
    make: ({ origin, token }) => createOpenAI({ baseURL: `${origin}/v1`, apiKey: token }).image,
  },
  {
    provider: '@ai-sdk/openai-compatible',
    make: ({ origin, token }) =>
      createOpenAICompatible({ name: 'gatehouse', baseURL: `${origin}/v1`, apiKey: token }).imageModel,
  },
  {
    provider: '@gatehouse/ai-sdk',
    make: ({ origin, token }) => createGatehouse({ baseURL: `${origin}/v1`, apiKey: token }).image,
  },
  {
    provider: '@openrouter/ai-sdk-provider',
    make: ({ origin, token }) => createOpenRouter({ baseURL: `${origin}/v1`, apiKey: token }).imageModel,
    has_no_masks: true,
  },
]

export const aiImages = MADE.map(
  ({ provider, make, ...made }): FamilyRow<ImagesClient> => ({
    name: `\`ai\` 7, \`${provider}\`, images`,
    packages: ['ai', provider],
    base: '/v1',
    dialect: 'image-generation',
    connect: (gateway) => ({ ...clientOf(make(gateway)), ...made }),
  }),
)
