/** Azure OpenAI: models by names of deployments, with the chat completions or the responses API. */
import { type AdapterParts, readOptions } from '../../settings.ts'
import { OPENAI_EMBEDDINGS } from '../text-families.ts'
import { type AiSdkVendor, vendor } from '../vendor-row.ts'

const OPTIONS = ['resourceName', 'apiVersion', 'api', 'deploymentUrls']

/** Throws an Error that names the provider and says what would be right. */
export function azure(parts: AdapterParts): AiSdkVendor {
  const { id, config, environment = {} } = parts
  const { options, wrong, oneOf, flag } = readOptions(parts, 'azure', OPTIONS)
  const { resourceName = environment.AZURE_RESOURCE_NAME, apiVersion = 'v1' } = options
  if (config.base_url === undefined && (typeof resourceName !== 'string' || !/^[a-z0-9-]+$/i.test(resourceName))) {
    throw new Error(`providers.${id} needs options.resourceName (or AZURE_RESOURCE_NAME), or base_url`)
  }
  if (typeof apiVersion !== 'string') throw wrong('apiVersion', 'a text such as v1')
  const api = oneOf('api', ['chat', 'responses']) ?? 'chat'
  const deploymentUrls = flag('deploymentUrls') ?? false
  // The package derives its URLs from the host; base_url replaces all before /v1 or /deployments.
  const baseUrl = `https://${resourceName ?? 'resource'}.openai.azure.com/openai`
  return vendor({
    baseUrl,
    adaptBaseUrl: (configured) => configured.replace(/\/v1\/?$/, ''),
    keyVariables: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY'],
    namespace: 'openai',
    async load({ key, fetch }) {
      const { createAzure } = await import('@ai-sdk/azure')
      return createAzure({ apiKey: key, baseURL: baseUrl, apiVersion, useDeploymentBasedUrls: deploymentUrls, fetch })
    },
    chat: {
      factory: (sdk) => (api === 'chat' ? sdk.chat : sdk.responses),
      // Its responses models read their options under another name.
      ...(api === 'chat' ? {} : { namespace: 'azure' }),
      options: {
        logit_bias: 'logitBias',
        metadata: 'metadata',
        parallel_tool_calls: 'parallelToolCalls',
        prediction: 'prediction',
        prompt_cache_key: 'promptCacheKey',
        safety_identifier: 'safetyIdentifier',
        service_tier: 'serviceTier',
        store: 'store',
        user: 'user',
        verbosity: 'textVerbosity',
      },
      hasStrictSchemas: true,
    },
    speech: {
      factory: (sdk) => sdk.speech,
      formats: { mp3: 'mp3', opus: 'opus', aac: 'aac', flac: 'flac', wav: 'wav', pcm: 'pcm' },
      has_speed: true,
      has_instructions: true,
    },
    transcription: {
      factory: (sdk) => sdk.transcription,
      options: { language: 'language', prompt: 'prompt', temperature: 'temperature' },
      segments: 'segments',
      timed: (words) => ({ timestampGranularities: words ? ['word', 'segment'] : ['segment'] }),
    },
    embeddings: {
      factory: (sdk) => sdk.embedding,
      ...OPENAI_EMBEDDINGS,
      maxTokens: () => 300_000,
      acceptsTokens: true,
    },
  })
}
