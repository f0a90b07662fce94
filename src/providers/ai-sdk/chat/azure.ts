/** Azure OpenAI: models behind names of deployments, by the chat completions or the responses API. */
import { readOptions } from '../../settings.ts'
import type { AiSdkParts } from '../vendor.ts'
import type { ChatVendor } from './vendor.ts'

const OPTIONS = ['resourceName', 'apiVersion', 'api', 'deploymentUrls']

/** Throws an Error that names the provider and says what would be right. */
export function azure(parts: AiSdkParts): ChatVendor {
  const { id, config, environment = {} } = parts
  const { options, wrong } = readOptions(parts, 'azure', OPTIONS)
  const {
    resourceName = environment.AZURE_RESOURCE_NAME,
    apiVersion = 'v1',
    api = 'chat',
    deploymentUrls = false,
  } = options
  if (config.base_url === undefined && (typeof resourceName !== 'string' || !/^[a-z0-9-]+$/i.test(resourceName))) {
    throw new Error(`providers.${id} needs options.resourceName (or AZURE_RESOURCE_NAME), or base_url`)
  }
  if (typeof apiVersion !== 'string') throw wrong('apiVersion', 'a text such as v1')
  if (api !== 'chat' && api !== 'responses') throw wrong('api', 'chat or responses')
  if (typeof deploymentUrls !== 'boolean')
    throw new Error(`providers.${id}.options.deploymentUrls must be true or false`)
  // The package builds its addresses by the host; base_url stands in the place of all before /v1 or /deployments.
  const home = `https://${resourceName ?? 'resource'}.openai.azure.com/openai`
  return {
    kind: 'azure',
    home,
    chatUrl: (base_url) => base_url.replace(/\/v1\/?$/, ''),
    key_env: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY'],
    // The one package under the other's name reads its options by its own.
    namespace: api === 'chat' ? 'openai' : 'azure',
    async load({ key, fetch }) {
      const { createAzure } = await import('@ai-sdk/azure')
      const made = createAzure({
        apiKey: key,
        baseURL: home,
        apiVersion,
        useDeploymentBasedUrls: deploymentUrls,
        fetch,
      })
      return api === 'chat' ? made.chat : made.responses
    },
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
  }
}
