/** The list of tasks, as a table or as a gallery of what they have generated. */
import { useMe } from '../../api/hooks.ts'
import type { AdminTask } from '../../api/types.ts'
import { count } from '../../lib/format.ts'
import { choice, flag } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Nothing } from '../../ui/display.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { FilterSelect, Filters, OwnerSearch } from '../../ui/filters.tsx'
import { ModelField } from '../../ui/model-field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { ShortTime } from '../../ui/values.tsx'
import { Gallery } from './gallery.tsx'
import { Progress, TaskDuration, TaskState } from './task-cells.tsx'
import { KINDS, NO_FILTER, useTaskList } from './task-list.ts'
import { isEnded, kindOf, stateOf, type TaskStatus } from './task-text.ts'

const COLUMNS: Column<AdminTask>[] = [
  { key: 'time', head: 'Submitted', cell: ({ submit_time }) => <ShortTime at={submit_time} /> },
  { key: 'status', head: 'State', cell: (task) => <TaskState task={task} /> },
  { key: 'model', head: 'Model', cell: ({ model }) => model },
  { key: 'kind', head: 'Kind', cell: ({ family }) => kindOf(family) },
  { key: 'progress', head: 'Progress', cell: (task) => <Progress task={task} /> },
  { key: 'duration', head: 'Duration', cell: (task) => <TaskDuration task={task} />, isNumber: true },
  { key: 'provider', head: 'Provider', cell: ({ provider }) => provider || <Nothing text="–" /> },
]

const STATUSES: (TaskStatus | 'unfinished')[] = [
  'unfinished',
  'SUCCESS',
  'FAILURE',
  'NOT_START',
  'QUEUED',
  'IN_PROGRESS',
]
const OPTIONS = STATUSES.map((value) => ({
  value,
  label: value === 'unfinished' ? 'In flight' : stateOf(value).label,
}))
const KIND_LABELS = { video: 'Video', '3d': '3D model', image: 'Image' }
const KIND_OPTIONS = KINDS.flatMap((value) => (value === '' ? [] : [{ value, label: KIND_LABELS[value] }]))
const TASK_FAMILIES = 'video-generation,chatcompat-video,3d-generation,image-generation'

/** While a task of the list is in flight. */
const AGAIN_MILLISECONDS = 5_000

export function TasksPage() {
  const [{ view, outputs }, change] = useAddress({ view: choice(['list', 'gallery'], 'list'), outputs: flag() })
  const { filters, change: filter, list, kept, isFiltered } = useTaskList({ refetch_ms: AGAIN_MILLISECONDS })
  const { status, kind, model, project_id, token_id } = filters
  const me = useMe()
  const { rows, hasMore } = list
  const clear = () => filter(NO_FILTER)
  const canSee = me?.rights.includes('contents') ?? false
  const empty = isFiltered ? (
    <Empty title="No task meets these filters" acts={<Button onClick={clear}>Clear filters</Button>} />
  ) : (
    <Empty title="No tasks yet" icon="task">
      Videos, 3D models and images that are made in the background appear here.
    </Empty>
  )
  return (
    <>
      <PageHead
        title="Tasks"
        note="Videos, 3D models and images that are made in the background."
        acts={
          <Segments
            label="What is shown"
            value={view}
            options={[
              { value: 'list', label: 'List' },
              { value: 'gallery', label: 'Gallery' },
            ]}
            onChange={(value) => change({ view: value as typeof view }, { push: true })}
          />
        }
      />
      <div className="stack">
        <Filters onClear={isFiltered ? clear : undefined}>
          <OwnerSearch token_id={token_id} project_id={project_id} onChange={filter} />
          <FilterSelect
            label="State"
            value={status}
            options={OPTIONS}
            onChange={(value) => filter({ status: value }, { push: true })}
          />
          <FilterSelect
            label="Kind"
            value={kind}
            options={KIND_OPTIONS}
            onChange={(value) => filter({ kind: value as typeof kind }, { push: true })}
          />
          <ModelField
            isCompact
            value={model}
            family={TASK_FAMILIES}
            onChange={(value) => filter({ model: value }, { push: true })}
          />
          {view === 'gallery' && canSee && (
            <Checkbox
              label="Show outputs (recorded in the audit log)"
              checked={outputs}
              onChange={(checked) => change({ outputs: checked })}
            />
          )}
        </Filters>
        {view === 'gallery' ? (
          <Gallery list={list} kept={kept} isShown={outputs && canSee} empty={empty} />
        ) : (
          <div className="tasks-list">
            <Table
              label="Tasks"
              columns={COLUMNS}
              rows={rows}
              keyOf={({ task_id }) => task_id}
              linkOf={({ task_id }) => ({ to: `/tasks/${task_id}`, search: kept })}
              isLoading={list.isLoading}
              error={list.error}
              onRetry={list.reload}
              hasMore={hasMore}
              isLoadingMore={list.isLoadingMore}
              onMore={list.more}
              foot={footOf(rows, hasMore)}
              empty={empty}
            />
          </div>
        )}
      </div>
    </>
  )
}

function footOf(rows: AdminTask[], hasMore: boolean): string {
  const open = rows.filter(({ status }) => !isEnded(status)).length
  const all = `${count(rows.length)} ${rows.length === 1 ? 'task' : 'tasks'}${hasMore ? ' so far' : ''}`
  return open === 0 ? all : `${all}, ${count(open)} in flight`
}
