/** The provider of a deployment of LiteLLM: `litellm_params`. */
import type { Draft, Members } from './imported.ts'
import { addressOf, headersOf, optionsOf, presetKey, secretOf } from './provider-parts.ts'
import { isVendor, vendorTree } from './vendors.ts'

/** LiteLLM derives the provider of a bare name from its list of models. */
const BARE: readonly [RegExp, string][] = [
  [/^(gpt-|o\d|chatgpt|text-embedding-|dall-e|gpt-image|omni-moderation)/, 'openai'],
  [/^claude/, 'anthropic'],
  [/^(gemini|text-bison)/, 'vertex_ai'],
  [/^command/, 'cohere'],
  [/^(mistral|ministral|codestral)-/, 'mistral'],
  [/^deepseek-/, 'deepseek'],
]

/** Prefixes of the models of Azure and Bedrock that name an API. */
const ROUTES = /^(converse|invoke|converse_like|responses|chat|global|o_series|gpt5_series)\//

const OPTIONS: Record<string, Record<string, string>> = {
  'amazon-bedrock': {
    aws_region_name: 'region',
    aws_access_key_id: 'accessKeyId',
    aws_secret_access_key: 'secretAccessKey',
    aws_session_token: 'sessionToken',
  },
  'google-vertex': { vertex_project: 'project', vertex_location: 'location', vertex_credentials: 'credentials' },
  azure: { api_version: 'apiVersion' },
}

/** Reads what says where a deployment is called; undefined: it cannot be, which is reported. */
export function litellmProvider(draft: Draft, params: Members): { provider: string; model: string } | undefined {
  const written = params.text('model')
  if (written === undefined) return void draft.dropped(params.path, 'model is missing')
  const { vendor, model } = vendorOf(written, params.text('custom_llm_provider'))
  const base_url = addressOf(draft, params, ['api_base', 'base_url'])
  const tree = vendor === undefined ? undefined : vendorTree(vendor, base_url)
  if (vendor === undefined || !tree) {
    return void draft.dropped(
      params.at('model'),
      `provider ${JSON.stringify(vendor ?? '')} is not known, and there is no api_base`,
    )
  }
  if (!isVendor(vendor)) {
    draft.mapped(
      params.at('model'),
      `providers.${vendor}.base_url`,
      'it is called as an API in the shape of that of OpenAI',
    )
  }
  const credential = params.text('litellm_credential_name')
  if (credential !== undefined) draft.dropped(params.at('litellm_credential_name'), 'the key is a variable')
  const key = secretOf(draft, params, { member: 'api_key', name: `${vendor}_API_KEY` })
  const isAzure = tree.kind === 'azure' && !params.has('azure_ad_token')
  const azure = () => draft.secret('', { path: params.path, name: '', variable: 'AZURE_API_KEY' })
  const known = key ?? presetKey(draft, tree, params.path) ?? (isAzure ? azure() : undefined)
  if (known !== undefined) tree.key = known
  const options = optionsOf(draft, params, {
    names: OPTIONS[String(tree.kind)],
    variableOf: (_, to) => `${vendor}_${to}`,
  })
  if (options) tree.options = options
  const headers = headersOf(draft, params, { members: ['extra_headers', 'headers'], vendor })
  const organization = secretOf(draft, params, { member: 'organization', name: `${vendor}_ORGANIZATION` })
  if (headers || organization !== undefined) {
    tree.headers = { ...headers, ...(organization !== undefined && { 'openai-organization': organization }) }
  }
  return { provider: draft.provider(vendor, tree), model }
}

function vendorOf(written: string, named: string | undefined): { vendor: string | undefined; model: string } {
  const slash = written.indexOf('/')
  const prefix = written.slice(0, Math.max(0, slash))
  if (named !== undefined) return { vendor: named, model: prefix === named ? written.slice(slash + 1) : written }
  if (slash === -1) return { vendor: BARE.find(([pattern]) => pattern.test(written))?.[1], model: written }
  return { vendor: prefix, model: written.slice(slash + 1).replace(ROUTES, '') }
}
