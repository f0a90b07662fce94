/** The built-in simulated provider: answers without a key or a network, and fails when a directive in the prompt requests it. */
import { type Clock, pause, unixSeconds } from '../../../src/kit/clock.ts'
import type { ChatCall, ChatRequest, MediaReader, Provider, SimulatedErrors } from '../../../src/providers/provider.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { usageFrom } from '../../../src/spec/usage.ts'
import { answerChoice, withAudio } from './answer.ts'
import { createSandboxSpeech, createSandboxTranscription } from './audio.ts'
import { audioFormat } from './chat-audio.ts'
import { type Answer, chunksOf, completionOf, outputOf } from './chat-response.ts'
import { createSandboxEmbeddings } from './embeddings.ts'
import { createSandboxImages } from './images.ts'
import { createManual, type Manual, type ManualPage } from './manual-search.ts'
import { createSandboxModerations } from './moderations.ts'
import { type Prompt, parsePrompt } from './prompt.ts'
import { createRandom } from './random.ts'
import { createSandboxRealtime } from './realtime.ts'
import { createRenderWorkers } from './render/workers.ts'
import { createSandboxRerank } from './rerank.ts'
import { createSandboxThreeD } from './three-d.ts'
import { throttle } from './throttle.ts'
import { countPrompt, promptLength } from './tokens.ts'
import { createSandboxVideo } from './video.ts'

/** Of all texts of a prompt: some 250,000 tokens of English. The work is done in the thread that serves every request. */
const MAX_PROMPT_CHARACTERS = 1_000_000

export type SandboxParts = {
  id: string
  clock: Clock
  /** Loads the pages of the project's manual; called once, when a question first needs them. */
  manual: () => Promise<ManualPage[]>
  /** Reads the images of a request; without it, the sandbox provides no images. */
  media?: MediaReader | undefined
  errors: SimulatedErrors
}

export function createSandbox({ id, clock, manual, media, errors }: SandboxParts): Provider {
  let index: Promise<Manual> | undefined
  const loadManual = () => {
    index ??= manual().then(createManual)
    // A failure is not cached: the next question tries again.
    index.catch(() => {
      index = undefined
    })
    return index
  }

  /** Waits or throws as the directives request; otherwise returns the complete answer. */
  async function generate(
    { model, request }: ChatCall,
    { signal, isStream }: { signal: AbortSignal; isStream: boolean },
  ): Promise<{ prompt: Prompt; answer: Answer }> {
    signal.throwIfAborted()
    assertLength(request)
    const prompt = parsePrompt(model, request)
    const { first_ms: wait = 0, finish, usage } = prompt.directives
    if (wait > 0) await pause(clock, wait, signal)
    throwRequestedStatus(prompt, model)
    const format = audioFormat(request, isStream)
    const id = createRandom(`id:${prompt.seed}`).alphanumerics(29)
    const choices = []
    for (let at = 0; at < (request.n ?? 1); at++) {
      const choice = await answerChoice(at, { request, prompt, manual: loadManual })
      const given = format ? withAudio(choice, { id: `audio_${id}`, format }) : choice
      choices.push(finish ? { ...given, finish_reason: finish } : given)
    }
    signal.throwIfAborted()
    const { input, image, audio } = countPrompt(request)
    const counts = { input, input_image: image, input_audio: audio, cached: 0, ...outputOf(choices) }
    const answer: Answer = {
      id: `chatcmpl-${id}`,
      created: unixSeconds(clock),
      model,
      choices,
      usage: usage === 'none' ? undefined : usageFrom(counts),
      logprobs: request.logprobs ? { seed: prompt.seed, top: request.top_logprobs ?? 0 } : undefined,
    }
    return { prompt, answer }
  }

  function throwRequestedStatus({ directives: { status, retry_after } }: Prompt, model: string): void {
    if (status === undefined) return
    const message = 'The simulated provider rejected the request, as "@sandbox status" requested.'
    throw errors.fromResponse({ model, status, retry_after, message })
  }

  // Videos and 3D models share the workers: there are no more cores for both together than for one.
  const renderWorkers = createRenderWorkers({})
  const parts = { clock, errors, renderWorkers }
  const video = createSandboxVideo(parts)
  const threeD = createSandboxThreeD(parts)
  const embeddings = createSandboxEmbeddings(parts)
  const images = media && createSandboxImages({ clock, errors, media })
  const close = async () => {
    embeddings.close()
    await Promise.all([video.close(), threeD.close(), images?.close()])
  }

  return {
    id,
    kind: 'sandbox',
    video,
    threeD,
    embeddings,
    rerank: createSandboxRerank(parts),
    moderations: createSandboxModerations(parts),
    speech: createSandboxSpeech(parts),
    transcription: createSandboxTranscription(parts),
    realtime: createSandboxRealtime(parts),
    ...(images ? { images } : {}),
    close,
    chat: {
      async complete(call, signal) {
        const { prompt, answer } = await generate(call, { signal, isStream: false })
        // A complete answer takes the time, and has the faults, of the same answer as a stream.
        const unsent = chunksOf({ ...answer, logprobs: undefined })
        for await (const _ of throttle(unsent, { directives: prompt.directives, clock, signal }));
        return completionOf(answer)
      },
      async *chunks(call, signal) {
        const { prompt, answer } = await generate(call, { signal, isStream: true })
        yield* throttle(chunksOf(answer), { directives: prompt.directives, clock, signal })
      },
      async countTokens({ request }) {
        assertLength(request)
        return countPrompt(request).input
      },
    },
  }
}

function assertLength(request: ChatRequest): void {
  const length = promptLength(request)
  if (length <= MAX_PROMPT_CHARACTERS) return
  const message = `The prompt has ${length} characters of text; the sandbox accepts at most ${MAX_PROMPT_CHARACTERS}.`
  throw new GatewayError('context_length_exceeded', message, { param: 'messages' })
}
