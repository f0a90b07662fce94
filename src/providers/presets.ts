/** Known vendors and local runtimes as data. The operator's configuration overrides every row. */
import type { ProviderKind, TEXT_APIS } from '../config/schema/provider-kinds.ts'
import type { Quirks } from '../config/schema/quirks.ts'
import type { ProviderConfig } from '../config/schema/schema.ts'
import type { InputTypeNames } from './text-api.ts'

/** The kinds of APIs for which a provider can pass clients through besides its own. */
export type TextApi = (typeof TEXT_APIS)[number]

export type Preset = {
  /** Default: chatcompat. */
  kind?: ProviderKind
  /** The kind that creates videos at the same vendor, with the same key. */
  video?: ProviderKind
  /** Likewise for images; false: no images are served. Absent: the images of its kind, below its base URL. */
  images?: ProviderKind | false
  base_url: string
  /**
   * Further text APIs that the vendor itself serves, with the same key: clients of these APIs are passed through. Absent
   * for vendors whose implementation supports less than a translated request does.
   */
  apis?: { [kind in TextApi]?: string }
  /** Environment variables that contain its key: the first that is set is used. Empty if no key is needed. */
  key_env: string[]
  /** False: its variable is often set for other purposes, so the variable alone does not add the vendor. */
  found_by_key?: false
  quirks?: Quirks
  fields?: NonNullable<ProviderConfig['fields']>
  /** Its APIs take `models` and `provider`. */
  takes_routing_fields?: true
  /** The values with which it distinguishes queries from documents to embed. */
  input_types?: InputTypeNames
  /** `{key}` stands for the key. */
  headers?: Record<string, string>
  /** Globs over the vendor's model names in lower case: which listed models are chat models. */
  chat_models?: { include?: string[]; exclude?: string[] }
  /** A runtime on this machine: its default port, and the `owned_by` in its model list. */
  local?: { port: number; owner: string }
}

/** Tuning fields that vendors with a closed schema reject. */
const TUNING = [
  'logit_bias',
  'metadata',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
  'verbosity',
]
/** Fields that other vendors introduced. */
const VENDOR_EXTRAS = ['repetition_penalty', 'thinking_enabled', 'web_search']

/** Vendors without a list of models that the gateway reads, by their kind: a key alone would add a provider without models. */
const unlisted = (vendors: { [Kind in ProviderKind]?: [base_url: string, ...key_env: string[]] }) =>
  Object.fromEntries(
    Object.entries(vendors).map(([kind, [base_url, ...key_env]]): [string, Preset] => [
      kind,
      { kind: kind as ProviderKind, base_url, key_env, found_by_key: false },
    ]),
  )

export const PRESETS: Record<string, Preset> = {
  openai: {
    base_url: 'https://api.openai.com/v1',
    apis: { 'responses-compat': 'https://api.openai.com/v1' },
    key_env: ['OPENAI_API_KEY'],
    quirks: { developer_role: true, custom_tools: true, embedding_base64: true, embedding_call_tokens: 300_000 },
    fields: { drop: [...VENDOR_EXTRAS, 'messages.reasoning_content'], rename: { max_tokens: 'max_completion_tokens' } },
    chat_models: {
      include: ['gpt-*', 'chatgpt-*', 'o*', 'ft:*'],
      // These have other endpoints than chat completions, or return only audio.
      exclude: ['*instruct*', '*realtime*', '*audio*', '*image*', '*codex*', '*-pro*', '*deep-research*'],
    },
  },
  anthropic: { kind: 'messages-compat', base_url: 'https://api.anthropic.com', key_env: ['ANTHROPIC_API_KEY'] },
  gemini: {
    kind: 'contentgen-compat',
    base_url: 'https://generativelanguage.googleapis.com/v1beta',
    key_env: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    video: 'google',
    images: 'google',
    chat_models: {
      include: ['gemini*', 'gemma*'],
      exclude: ['*image*', '*live*', '*audio*', '*computer-use*', '*robotics*'],
    },
  },
  mistral: {
    base_url: 'https://api.mistral.ai/v1',
    key_env: ['MISTRAL_API_KEY'],
    // Its last chunk contains the usage even if it is not requested.
    quirks: { stream_usage: false, embedding_inputs: 32, embedding_call_tokens: 16_000, embedding_tokens: false },
    fields: {
      drop: [...TUNING, ...VENDOR_EXTRAS, 'logprobs', 'top_logprobs', 'messages.reasoning_content'],
      rename: { seed: 'random_seed' },
    },
    chat_models: { exclude: ['*ocr*', '*voxtral*'] },
  },
  groq: {
    base_url: 'https://api.groq.com/openai/v1',
    key_env: ['GROQ_API_KEY'],
    quirks: { multiple_choices: false },
    fields: { drop: ['logit_bias', 'logprobs', 'top_logprobs', ...VENDOR_EXTRAS, 'messages.reasoning_content'] },
    chat_models: { exclude: ['*guard*', '*playai*', '*orpheus*'] },
  },
  deepseek: {
    base_url: 'https://api.deepseek.com/v1',
    // https://api-docs.deepseek.com/guides/anthropic_api
    apis: { 'messages-compat': 'https://api.deepseek.com/anthropic' },
    key_env: ['DEEPSEEK_API_KEY'],
    quirks: { json_schema: false, multiple_choices: false },
  },
  openrouter: {
    base_url: 'https://openrouter.ai/api/v1',
    key_env: ['OPENROUTER_API_KEY'],
    takes_routing_fields: true,
    images: false,
    fields: { rename: { 'messages.reasoning_content': 'reasoning' } },
  },
  xai: {
    base_url: 'https://api.x.ai/v1',
    key_env: ['XAI_API_KEY'],
    video: 'xai',
    images: 'xai',
    chat_models: { exclude: ['*image*', '*imagine*', '*video*'] },
  },
  together: {
    base_url: 'https://api.together.xyz/v1',
    key_env: ['TOGETHER_API_KEY'],
    images: 'togetherai',
    quirks: { embedding_tokens: false, rerank: true },
    chat_models: { exclude: ['*flux*', '*guard*'] },
  },
  fireworks: {
    base_url: 'https://api.fireworks.ai/inference/v1',
    key_env: ['FIREWORKS_API_KEY'],
    images: 'fireworks',
    chat_models: { exclude: ['*flux*', '*stable-diffusion*'] },
  },
  deepinfra: {
    base_url: 'https://api.deepinfra.com/v1/openai',
    key_env: ['DEEPINFRA_API_KEY', 'DEEPINFRA_TOKEN'],
    chat_models: { exclude: ['*flux*', '*stable-diffusion*', '*bge-*', '*gte-*', '*e5-*'] },
  },
  cerebras: {
    base_url: 'https://api.cerebras.ai/v1',
    key_env: ['CEREBRAS_API_KEY'],
    quirks: { multiple_choices: false },
    fields: {
      drop: ['frequency_penalty', 'presence_penalty', 'logit_bias', 'service_tier', ...VENDOR_EXTRAS],
      rename: { 'messages.reasoning_content': 'reasoning' },
    },
  },
  perplexity: {
    base_url: 'https://api.perplexity.ai',
    key_env: ['PERPLEXITY_API_KEY'],
    // Every chunk contains the usage so far.
    quirks: { stream_usage: false, tools: false, multiple_choices: false },
  },
  moonshot: { base_url: 'https://api.moonshot.ai/v1', key_env: ['MOONSHOT_API_KEY'] },
  nvidia: {
    base_url: 'https://integrate.api.nvidia.com/v1',
    key_env: ['NVIDIA_API_KEY'],
    images: false,
    input_types: { query: 'query', document: 'passage' },
    fields: { drop: [...TUNING, ...VENDOR_EXTRAS, 'messages.reasoning_content'] },
    chat_models: { exclude: ['*nv-*', '*guard*', '*reward*', '*clip*', '*bge-*'] },
  },
  sambanova: { base_url: 'https://api.sambanova.ai/v1', key_env: ['SAMBANOVA_API_KEY'] },
  hyperbolic: { base_url: 'https://api.hyperbolic.xyz/v1', key_env: ['HYPERBOLIC_API_KEY'], images: false },
  novita: {
    base_url: 'https://api.novita.ai/openai/v1',
    key_env: ['NOVITA_API_KEY'],
    images: false,
    quirks: { embedding_tokens: false, rerank: true },
  },
  alibaba: {
    base_url: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    key_env: ['DASHSCOPE_API_KEY'],
    video: 'alibaba',
    images: false,
    quirks: { embedding_inputs: 10, embedding_tokens: false },
    fields: { rename: { thinking_enabled: 'enable_thinking' } },
  },
  zai: { base_url: 'https://api.z.ai/api/paas/v4', key_env: ['ZAI_API_KEY'] },
  zhipu: {
    base_url: 'https://open.bigmodel.cn/api/paas/v4',
    key_env: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY'],
    quirks: { embedding_inputs: 64, embedding_tokens: false },
  },
  cohere: {
    base_url: 'https://api.cohere.ai/compatibility/v1',
    key_env: ['COHERE_API_KEY', 'CO_API_KEY'],
    quirks: { multiple_choices: false, embedding_inputs: 96, embedding_tokens: false },
    chat_models: { include: ['command*', 'c4ai*'] },
  },
  huggingface: {
    base_url: 'https://router.huggingface.co/v1',
    key_env: ['HF_TOKEN'],
    found_by_key: false,
    images: false,
  },
  github: { base_url: 'https://models.github.ai/inference', key_env: ['GITHUB_TOKEN'], found_by_key: false },

  // Vendors of embeddings and rerankers; they have no model list.
  jina: {
    base_url: 'https://api.jina.ai/v1',
    key_env: ['JINA_API_KEY'],
    found_by_key: false,
    quirks: { embedding_inputs: 512, embedding_tokens: false, rerank: true },
    fields: { rename: { input_type: 'task' }, drop: ['user', 'max_tokens_per_doc'] },
    input_types: { query: 'retrieval.query', document: 'retrieval.passage' },
  },

  ...unlisted({
    voyage: ['https://api.voyageai.com/v1', 'VOYAGE_API_KEY'],
    // Audio.
    elevenlabs: ['https://api.elevenlabs.io', 'ELEVENLABS_API_KEY'],
    deepgram: ['https://api.deepgram.com', 'DEEPGRAM_API_KEY'],
    assemblyai: ['https://api.assemblyai.com', 'ASSEMBLYAI_API_KEY'],
    // Images, videos and 3D models.
    fal: ['https://queue.fal.run', 'FAL_KEY', 'FAL_API_KEY'],
    replicate: ['https://api.replicate.com/v1', 'REPLICATE_API_TOKEN'],
    minimax: ['https://api.minimax.io/v2', 'MINIMAX_API_KEY'],
    'black-forest-labs': ['https://api.bfl.ai/v1', 'BFL_API_KEY'],
    meshy: ['https://api.meshy.ai/openapi', 'MESHY_API_KEY'],
    tripo: ['https://api.tripo3d.ai/v2/openapi', 'TRIPO_API_KEY'],
  }),

  ollama: {
    base_url: 'http://127.0.0.1:11434/v1',
    key_env: [],
    quirks: { multiple_choices: false, embedding_tokens: false },
    local: { port: 11434, owner: 'library' },
  },
  llamacpp: {
    base_url: 'http://127.0.0.1:8080/v1',
    key_env: [],
    quirks: { rerank: true },
    local: { port: 8080, owner: 'llamacpp' },
  },
  vllm: {
    base_url: 'http://127.0.0.1:8000/v1',
    key_env: [],
    quirks: { embedding_base64: true, rerank: true },
    local: { port: 8000, owner: 'vllm' },
  },
  lmstudio: {
    base_url: 'http://127.0.0.1:1234/v1',
    key_env: [],
    local: { port: 1234, owner: 'organization_owner' },
  },
  // Another Gatehouse is a vendor like any other; set base_url to its address.
  gatehouse: {
    base_url: 'http://127.0.0.1:8787/v1',
    key_env: [],
    quirks: { developer_role: true, custom_tools: true, embedding_base64: true, rerank: true, image_stream: true },
    input_types: { query: 'query', document: 'document' },
  },
}
