/** Tasks as cards, each with what it has generated. */
import type { ReactNode } from 'react'
import { useApi } from '../../api/hooks.ts'
import type { AdminTask } from '../../api/types.ts'
import { A, Button } from '../../ui/button.tsx'
import { Failed, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/values.tsx'
import { Poster } from './outputs.tsx'
import { Progress, TaskState } from './task-cells.tsx'
import { isEnded, kindOf } from './task-text.ts'

type GalleryProps = {
  /** The filters of the list, which its links keep. */
  kept: Record<string, string>
  list: {
    rows: AdminTask[]
    isLoading: boolean
    error: Error | null
    hasMore: boolean
    isLoadingMore: boolean
    more(): void
    reload(): void
  }
  /** Whether the outputs are read and shown. */
  isShown: boolean
  empty: ReactNode
}

export function Gallery({ list, kept, isShown, empty }: GalleryProps) {
  const { rows, isLoading, error, hasMore, isLoadingMore, more, reload } = list
  if (error && rows.length === 0) return <Failed error={error} onRetry={reload} />
  if (isLoading) return <Loading lines={8} />
  if (rows.length === 0) return <div className="table-frame">{empty}</div>
  return (
    <div className="stack">
      <ul className="gallery">
        {rows.map((task) => (
          <li key={task.task_id} className="gallery-card">
            <div className="gallery-poster">
              {isShown && task.status === 'SUCCESS' ? (
                <TaskPoster task={task} />
              ) : (
                <span className="faint">{kindOf(task.family)}</span>
              )}
            </div>
            <div className="gallery-text">
              <A to={`/tasks/${task.task_id}`} search={kept} className="gallery-link cut" title={task.task_id}>
                {task.model}
              </A>
              <TaskState task={task} />
              {!isEnded(task.status) && <Progress task={task} />}
              <span className="faint small">
                <Time at={task.submit_time} isRelative />
              </span>
            </div>
          </li>
        ))}
      </ul>
      {hasMore && (
        <div className="row">
          <Button onClick={more} isBusy={isLoadingMore}>
            Load more
          </Button>
        </div>
      )}
    </div>
  )
}

function TaskPoster({ task: { task_id, family } }: { task: AdminTask }) {
  const { data } = useApi('GET /admin/v1/tasks/{task_id}/outputs', { params: { task_id } })
  const [first] = data?.outputs ?? []
  if (!first) return <span className="faint">{data ? 'No outputs left' : kindOf(family)}</span>
  const poster = data?.poster ? { content_type: 'image/*', url: data.poster } : first
  return <Poster output={poster} label={kindOf(family)} />
}
