/** The kinds of providers as data: the API that each one calls, its own options, the variables that it reads. */

export type KindRow = {
  /** Which API it calls. */
  calls: string
  /** Environment variables that it reads when the configuration has no value; presets name their own. */
  environment?: readonly string[]
  /** Members of `options`, with their meaning and default. */
  options?: Record<string, string>
}

const AUDIO_MODELS = 'Models that can generate audio, as glob patterns.'

export const KINDS = {
  chatcompat: {
    calls: "OpenAI's APIs, or those in their shape; rerank too with `quirks.rerank`. The default kind.",
  },
  sandbox: { calls: 'Simulated by the gateway.' },
  'chatcompat-video': {
    calls: "An API in the shape of OpenAI's `/videos`, or another Gatehouse.",
    options: {
      api: '`videos` (`/videos`) or `video-generations` (`/video/generations`). Default `videos`.',
      body: '`json` or `multipart`. Default `json`.',
      image_as: 'The field of a first frame: `input_reference` or `image`. Default `input_reference`.',
      cancel: '`no`, `delete` (DELETE of the video) or `post` (POST to `/cancel` of the task). Default `no`.',
      idempotent: 'The upstream honours `Idempotency-Key`. Default `false`.',
      key_hours: 'Hours for which it does. Default 24.',
      list: '`yes`: an order in doubt is looked up in `GET /videos`; `complete`: and sent again if it is not listed within five minutes; `no`. Default `yes`.',
    },
  },
  alibaba: { calls: 'Alibaba Model Studio (DashScope).', environment: ['DASHSCOPE_API_KEY', 'ALIBABA_API_KEY'] },
  'amazon-bedrock': {
    calls: 'Amazon Bedrock.',
    environment: [
      'AWS_REGION',
      'AWS_DEFAULT_REGION',
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AWS_SESSION_TOKEN',
      'AWS_BEARER_TOKEN_BEDROCK',
    ],
    options: {
      region: 'The AWS region. Default `AWS_REGION`, else `AWS_DEFAULT_REGION`.',
      accessKeyId: 'With `secretAccessKey`. Default `AWS_ACCESS_KEY_ID`.',
      secretAccessKey: 'Default `AWS_SECRET_ACCESS_KEY`.',
      sessionToken: 'Of temporary credentials. Default `AWS_SESSION_TOKEN`.',
      apiKey: 'As `key`. Default `AWS_BEARER_TOKEN_BEDROCK`.',
    },
  },
  ark: {
    calls: 'BytePlus ModelArk and Volcengine Ark (Seedance).',
    environment: ['ARK_API_KEY'],
    options: { audio_models: AUDIO_MODELS },
  },
  azure: {
    calls: 'Azure OpenAI.',
    environment: ['AZURE_API_KEY', 'AZURE_OPENAI_API_KEY', 'AZURE_RESOURCE_NAME'],
    options: {
      resourceName: 'For the address. Default `AZURE_RESOURCE_NAME`.',
      apiVersion: 'Default `v1`.',
      api: '`chat` (chat completions) or `responses`. Default `chat`.',
      deploymentUrls: 'Use the older addresses with `/deployments/<name>`. Default `false`.',
    },
  },
  assemblyai: { calls: 'AssemblyAI.', environment: ['ASSEMBLYAI_API_KEY'] },
  'black-forest-labs': { calls: 'Black Forest Labs (FLUX).', environment: ['BFL_API_KEY'] },
  cohere: { calls: 'Cohere.', environment: ['COHERE_API_KEY', 'CO_API_KEY'] },
  'contentgen-compat': {
    calls: "Google's Gemini API (`generateContent`), or an API in its shape; also Vertex AI by its address.",
    options: {
      auth: '`x-goog-api-key` or `bearer`. Default `x-goog-api-key`.',
      thinking: 'What the models take: `none`, `budget` or `level`.',
    },
  },
  deepinfra: { calls: 'DeepInfra.', environment: ['DEEPINFRA_API_KEY'] },
  deepseek: { calls: 'DeepSeek.', environment: ['DEEPSEEK_API_KEY'] },
  deepgram: { calls: 'Deepgram.', environment: ['DEEPGRAM_API_KEY'] },
  elevenlabs: { calls: 'ElevenLabs.', environment: ['ELEVENLABS_API_KEY'] },
  fal: { calls: 'fal.', environment: ['FAL_KEY', 'FAL_API_KEY'] },
  fireworks: { calls: 'Fireworks AI.', environment: ['FIREWORKS_API_KEY'] },
  google: {
    calls: 'The Gemini API but for chat, which is `contentgen-compat`.',
    environment: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  },
  'google-vertex': {
    calls: 'Google Vertex AI.',
    environment: ['GOOGLE_VERTEX_API_KEY', 'GOOGLE_VERTEX_ACCESS_TOKEN', 'GOOGLE_APPLICATION_CREDENTIALS'],
    options: {
      project: 'The Google Cloud project; not needed with an express-mode key.',
      location: 'The region. Default `us-central1`.',
      credentials: 'Path of a service account file. Default `GOOGLE_APPLICATION_CREDENTIALS`.',
      storage_url: 'Of Cloud Storage. Default `https://storage.googleapis.com`.',
    },
  },
  groq: { calls: 'Groq.', environment: ['GROQ_API_KEY'] },
  huggingface: { calls: 'Hugging Face inference providers.', environment: ['HF_TOKEN', 'HUGGINGFACE_API_KEY'] },
  kling: {
    calls: 'Kling AI.',
    environment: ['KLING_ACCESS_KEY', 'KLING_SECRET_KEY'],
    options: {
      access_key: 'With `secret_key` in place of `key`. Default `KLING_ACCESS_KEY`.',
      secret_key: 'Signs a short-lived key for each request. Default `KLING_SECRET_KEY`.',
    },
  },
  luma: { calls: 'Luma.', environment: ['LUMAAI_API_KEY'] },
  meshy: { calls: 'Meshy.', environment: ['MESHY_API_KEY'] },
  'messages-compat': {
    calls: "Anthropic's messages API, or an API in its shape.",
    options: {
      version: 'The `anthropic-version` that is sent. Default `2023-06-01`.',
      auth: '`x-api-key` or `bearer`. Default `x-api-key`.',
      sampling: 'Whether the models take `temperature`, `top_p` and `top_k`.',
      thinking: 'What the models take: `none`, `budget`, `adaptive` or `either`.',
    },
  },
  minimax: { calls: 'MiniMax (Hailuo).', environment: ['MINIMAX_API_KEY'] },
  mistral: { calls: 'Mistral.', environment: ['MISTRAL_API_KEY'] },
  moonshotai: { calls: 'Moonshot AI (Kimi).', environment: ['MOONSHOT_API_KEY'] },
  perplexity: { calls: 'Perplexity.', environment: ['PERPLEXITY_API_KEY'] },
  replicate: { calls: 'Replicate.', environment: ['REPLICATE_API_TOKEN'] },
  'rerank-compat': { calls: "An API in the shape of Cohere's `/rerank`, as Jina and local servers have it." },
  'responses-compat': {
    calls: "OpenAI's Responses API, or an API in its shape.",
    options: {
      reasoning: 'What the models return: `none`, `plain` or `encrypted` reasoning.',
      sampling: 'Whether the models take `temperature` and `top_p`.',
      audio: 'Whether messages may have `input_audio`. Default `false`.',
    },
  },
  runway: { calls: 'Runway.', environment: ['RUNWAYML_API_SECRET'], options: { audio_models: AUDIO_MODELS } },
  togetherai: { calls: 'Together AI.', environment: ['TOGETHER_API_KEY', 'TOGETHER_AI_API_KEY'] },
  tripo: { calls: 'Tripo.', environment: ['TRIPO_API_KEY'] },
  voyage: { calls: 'Voyage AI.', environment: ['VOYAGE_API_KEY'] },
  xai: { calls: 'xAI (Grok).', environment: ['XAI_API_KEY'] },
} as const satisfies Record<string, KindRow>

export type ProviderKind = keyof typeof KINDS
export const PROVIDER_KINDS = Object.keys(KINDS) as ProviderKind[]

/** Where a kind is called without a `base_url`. The rows of `providers/ai-sdk/vendors.ts` have their own; others need one. */
export const DEFAULT_ADDRESSES: Partial<Record<ProviderKind, string>> = {
  'amazon-bedrock': 'by region',
  ark: '`https://ark.ap-southeast.bytepluses.com/api/v3`',
  azure: 'by the name of the resource',
  'google-vertex': 'by project and location',
  kling: '`https://api-singapore.klingai.com/v1`',
  meshy: '`https://api.meshy.ai/openapi`',
  runway: '`https://api.dev.runwayml.com/v1`',
  tripo: '`https://api.tripo3d.ai/v2/openapi`',
}

/** The APIs that a provider of another kind may serve too. */
export const TEXT_APIS = ['responses-compat', 'messages-compat'] as const
