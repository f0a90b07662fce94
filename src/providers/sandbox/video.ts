/** Videos of the sandbox. */
import type { Clock } from '../../kit/clock.ts'
import type { SimulatedErrors, VideoProvider } from '../provider.ts'
import { isQuick } from './course.ts'
import { createJobs } from './jobs.ts'
import { createMadeFiles, type GeneratedFiles } from './made-files.ts'
import { createSandboxOrders } from './orders.ts'
import { planRender } from './render/plan.ts'
import { createRenderWorkers, type RenderWorkers } from './render/workers.ts'
import { readOperation, readOrder, type VideoOperation } from './video-operation.ts'

export type SandboxVideoParts = {
  clock: Clock
  errors: SimulatedErrors
  /** Default: as many processes as half of the cores, and a directory of the machine's temporary ones. */
  renderWorkers?: RenderWorkers
  files?: GeneratedFiles
  most_waiting?: number
}

export type SandboxVideo = { video: VideoProvider; close: () => Promise<void> }

const NAME = 'video.mp4'

export function createSandboxVideo(parts: SandboxVideoParts): SandboxVideo {
  const { clock, errors, renderWorkers = createRenderWorkers({}), files = createMadeFiles(), most_waiting } = parts
  const workOf = (operation: VideoOperation) => {
    const plan = planRender({ ...operation, quick: isQuick(operation) })
    return { plan, pieces: plan.frames, name: NAME }
  }
  const jobs = createJobs({ clock, files, renderWorkers, most_waiting, workOf })
  const video = createSandboxOrders({
    clock,
    errors,
    thing: 'video',
    jobs,
    readOrder: (call: Parameters<VideoProvider['start']>[0]) => readOrder(call, clock),
    readOperation,
    filesOf: () => [{ name: NAME, content_type: 'video/mp4' }],
  })
  return { video, close: () => jobs.close() }
}
