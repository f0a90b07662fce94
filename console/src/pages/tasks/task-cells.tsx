/** The parts of a task that the list, the gallery and its page show. */
import type { AdminTask } from '../../api/types.ts'
import { duration } from '../../lib/format.ts'
import { Badge, Meter, Nothing } from '../../ui/display.tsx'
import { useNow } from '../../ui/now.ts'
import { isEnded, stateOf } from './task-text.ts'

export function TaskState({ task: { status, fail_code } }: { task: Pick<AdminTask, 'status' | 'fail_code'> }) {
  const { label, tone } = stateOf(status)
  return (
    <span className="task-state">
      <Badge tone={tone}>{label}</Badge>
      {fail_code && <span className="cut soft">{fail_code}</span>}
    </span>
  )
}

export const Progress = ({ task: { status, progress } }: { task: Pick<AdminTask, 'status' | 'progress'> }) =>
  isEnded(status) ? (
    <Nothing text="–" />
  ) : (
    <span className="task-progress">
      <Meter label="Progress" value={progress} max={100} isProgress text={`${progress} %`} />
      <span>{progress} %</span>
    </span>
  )

/** From the submission to the end, or until now. */
export function TaskDuration({ task: { submit_time, finish_time } }: { task: AdminTask }) {
  const now = useNow()
  return <span>{duration(Math.max(0, (finish_time || now) - submit_time) * 1000)}</span>
}
