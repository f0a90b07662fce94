/** The built-in simulated vendor: answers without a key or a network, and misbehaves when a prompt tells it to. */
import { type Clock, pause, unixSeconds } from '../../../src/kit/clock.ts'
import type { ChatCall, MediaReader, Provider, SimulatedErrors } from '../../../src/providers/provider.ts'
import { usageFrom } from '../../../src/spec/usage.ts'
import { answerChoice } from './answer.ts'
import { type Answer, chunksOf, completionOf, outputOf } from './chat-response.ts'
import { createSandboxEmbeddings } from './embeddings.ts'
import { createSandboxImages } from './images.ts'
import { createManual, type Manual, type ManualPage } from './manual-search.ts'
import { createSandboxModerations } from './moderations.ts'
import { type Prompt, readPrompt } from './prompt.ts'
import { createRandom } from './random.ts'
import { createRenderWorkers } from './render/workers.ts'
import { createSandboxRerank } from './rerank.ts'
import { createSandboxThreeD } from './three-d.ts'
import { paced } from './throttle.ts'
import { countPrompt } from './tokens.ts'
import { createSandboxVideo } from './video.ts'

export type SandboxParts = {
  id: string
  clock: Clock
  /** The pages of the project's manual, asked for once, when a question first needs them. */
  manual: () => Promise<ManualPage[]>
  /** Reads the images of a request; without it no images are made. */
  media?: MediaReader | undefined
  errors: SimulatedErrors
}

export function createSandbox({ id, clock, manual, media, errors }: SandboxParts): Provider {
  let index: Promise<Manual> | undefined
  const openManual = () => {
    index ??= manual().then(createManual)
    // A failure is not kept: the next question asks again.
    index.catch(() => {
      index = undefined
    })
    return index
  }

  /** Waits as told, refuses as told, and otherwise knows the whole answer. */
  async function answer({ model, request }: ChatCall, signal: AbortSignal): Promise<{ prompt: Prompt; said: Answer }> {
    signal.throwIfAborted()
    const prompt = readPrompt(model, request)
    const { first_ms: wait = 0, finish, usage } = prompt.directives
    if (wait > 0) await pause(clock, wait, signal)
    refuseAsTold(prompt, model)
    const choices = []
    for (let at = 0; at < (request.n ?? 1); at++) {
      const choice = await answerChoice(at, { request, prompt, manual: openManual })
      choices.push(finish ? { ...choice, finish_reason: finish } : choice)
    }
    signal.throwIfAborted()
    const { input, image } = countPrompt(request)
    const counts = { input, input_image: image, cached: 0, ...outputOf(choices) }
    const said: Answer = {
      id: `chatcmpl-${createRandom(`id:${prompt.seed}`).alphanumerics(29)}`,
      created: unixSeconds(clock),
      model,
      choices,
      usage: usage === 'none' ? undefined : usageFrom(counts),
      logprobs: request.logprobs ? { seed: prompt.seed, top: request.top_logprobs ?? 0 } : undefined,
    }
    return { prompt, said }
  }

  function refuseAsTold({ directives: { status, retry_after } }: Prompt, model: string): void {
    if (status === undefined) return
    const message = 'The simulated vendor refused the request, as "@sandbox status" asked it to.'
    throw errors.fromResponse({ model, status, retry_after, message })
  }

  // One crew for both: the machine has so many cores and no more.
  const renderWorkers = createRenderWorkers({})
  const { video, close: closeVideo } = createSandboxVideo({ clock, errors, renderWorkers })
  const { threeD, close: closeThreeD } = createSandboxThreeD({ clock, errors, renderWorkers })
  const close = async () => {
    await Promise.all([closeVideo(), closeThreeD()])
  }

  return {
    id,
    kind: 'sandbox',
    video,
    threeD,
    embeddings: createSandboxEmbeddings({ clock, errors }),
    rerank: createSandboxRerank({ clock, errors }),
    moderations: createSandboxModerations({ clock, errors }),
    ...(media ? { images: createSandboxImages({ clock, errors, media }) } : {}),
    close,
    chat: {
      async complete(call, signal) {
        const { prompt, said } = await answer(call, signal)
        // A whole answer takes the time, and meets the faults, of the same answer streamed.
        const unseen = chunksOf({ ...said, logprobs: undefined })
        for await (const _ of paced(unseen, { directives: prompt.directives, clock, signal }));
        return completionOf(said)
      },
      async *chunks(call, signal) {
        const { prompt, said } = await answer(call, signal)
        yield* paced(chunksOf(said), { directives: prompt.directives, clock, signal })
      },
    },
  }
}
