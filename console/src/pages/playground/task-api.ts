/** A task of the playground: a video or a 3D model that is made while the page polls it. */
import { useQuery } from '@tanstack/react-query'
import { send } from '../../api/client.ts'
import { chosenProject } from '../../lib/project.ts'
import { projectHeader } from './run-chat.ts'

/** `files`: where the outputs are. */
export type TaskKind = {
  path: '/v1/video/generations' | '/v1/3d/generations'
  files: '/v1/videos' | '/v1/3d/generations'
  name: string
}
export type Task = {
  task_id: string
  status: string
  progress: string | number | null
  fail_code: string
  fail_reason: string | null
  outputs: string[] | null
}

const POLL_MILLISECONDS = 1_500
const ENDED = ['SUCCESS', 'FAILURE']

export const isEnded = (task: Task | undefined): boolean => task !== undefined && ENDED.includes(task.status)

/** 0 to 100. */
export const progressOf = ({ status, progress }: Task): number =>
  status === 'SUCCESS' ? 100 : Number.parseFloat(String(progress ?? 0)) || 0

/** Polls until it has ended. */
export function useTask({ path }: TaskKind, task_id: string, project: string) {
  return useQuery({
    queryKey: ['playground task', path, task_id, project],
    queryFn: async ({ signal }) => {
      const headers = projectHeader(project)
      const response = await send(`GET /admin/v1/playground${path}/${encodeURIComponent(task_id)}`, { headers, signal })
      return ((await response.json()) as { data: Task }).data
    },
    enabled: task_id !== '',
    refetchInterval: ({ state }) => (isEnded(state.data) ? false : POLL_MILLISECONDS),
  })
}

export async function cancelTask({ path }: TaskKind, task_id: string, project: string): Promise<void> {
  const headers = projectHeader(project)
  await send(`POST /admin/v1/playground${path}/${encodeURIComponent(task_id)}/cancel`, { headers })
}

/** The address of an output: of this gateway, with the session as the right to read it. */
export function outputAddress({ files }: TaskKind, task_id: string, of: { project: string; index: number }): string {
  const query = new URLSearchParams()
  const project = of.project || chosenProject()
  if (project) query.set('project', project)
  if (of.index > 0) query.set('index', String(of.index))
  return `/admin/v1/playground${files}/${encodeURIComponent(task_id)}/content${query.size > 0 ? `?${query}` : ''}`
}
