/** Makes a video or a 3D model, follows its progress, and shows it. The address has the task, so that it can be left. */
import { lazy, Suspense, useState } from 'react'
import { text } from '../../lib/search.ts'
import { notifyError } from '../../lib/toasts.ts'
import { useAddress } from '../../ui/address.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge, Meter } from '../../ui/display.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import type { Attachment } from './chat-types.ts'
import { type FamilyProps, ModelChoice, OrderForm } from './family-parts.tsx'
import { Sources } from './images.tsx'
import { cancelTask, isEnded, outputAddress, progressOf, type Task, type TaskKind, useTask } from './task-api.ts'
import { useCall } from './use-call.ts'

const VIDEO: TaskKind = { path: '/v1/video/generations', files: '/v1/videos', name: 'video' }
const MODEL_3D: TaskKind = { path: '/v1/3d/generations', files: '/v1/3d/generations', name: '3D model' }
const RATIOS = ['', '16:9', '9:16', '1:1', '4:3', '3:4'].map((value) => ({ value, label: value || 'default' }))
const SECONDS = ['', '4', '5', '6', '8', '10'].map((value) => ({ value, label: value ? `${value} s` : 'default' }))

type Ordered = { data: { task_id: string } }

export function Videos(props: FamilyProps) {
  const [ratio, setRatio] = useState('')
  const [seconds, setSeconds] = useState('')
  const options = { ...(ratio && { aspect_ratio: ratio }), ...(seconds && { duration: Number(seconds) }) }
  return (
    <TaskMaker {...props} kind={VIDEO} options={options} sourceLabel="Add a first frame">
      <div className="play-pair">
        <Select label="Ratio" value={ratio} options={RATIOS} onChange={setRatio} />
        <Select label="Length" value={seconds} options={SECONDS} onChange={setSeconds} />
      </div>
    </TaskMaker>
  )
}

/** The viewer shows `glb`, which is the default of the gateway. */
export const Models3d = (props: FamilyProps) => (
  <TaskMaker {...props} kind={MODEL_3D} options={{ format: 'glb' }} sourceLabel="Add a picture of it" />
)

type MakerProps = FamilyProps & { kind: TaskKind; options: object; sourceLabel: string; children?: React.ReactNode }

function TaskMaker({ model, family, project, stored, onModel, kind, options, sourceLabel, children }: MakerProps) {
  const [{ task }, change] = useAddress({ task: text() })
  const [prompt, setPrompt] = useState(stored.join('\n'))
  const [sources, setSources] = useState<Attachment[]>([])
  const { error, isRunning, run, stop } = useCall<Ordered>()
  const hasOrder = prompt.trim() !== '' || sources.length > 0
  const [source] = sources
  const body = { model, ...options, ...(prompt && { prompt }), ...(source && { image: source.data_url }) }
  const call = { path: kind.path, body }
  const submit = async () => {
    const called = await run({ ...call, project })
    if (called) change({ task: called.data.data.task_id })
  }
  return (
    <div className="play-order">
      <OrderForm
        act="Generate"
        call={call}
        isRunning={isRunning}
        problem={hasOrder ? undefined : `Type what the ${kind.name} shows.`}
        error={error}
        onSubmit={() => void submit()}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextArea label="Prompt" rows={4} maxLength={32_000} value={prompt} onChange={setPrompt} />
        {children}
        <Sources label={sourceLabel} files={sources} onChange={(files) => setSources(files.slice(-1))} />
      </OrderForm>
      <section className="play-result" aria-label="Result">
        {task === '' ? (
          <Empty title="Nothing yet">The {kind.name} appears here. You may leave the page meanwhile.</Empty>
        ) : (
          <TaskView key={task} kind={kind} task_id={task} project={project} />
        )}
      </section>
    </div>
  )
}

type TaskViewProps = { kind: TaskKind; task_id: string; project: string }

function TaskView({ kind, task_id, project }: TaskViewProps) {
  const { data: task, error, refetch } = useTask(kind, task_id, project)
  if (error) return <Failed error={error} onRetry={() => void refetch()} />
  if (!task) return <Loading lines={2} />
  const cancel = () => cancelTask(kind, task_id, project).then(() => refetch(), notifyError)
  return (
    <>
      <div className="row-between">
        <span className="row" role="status">
          <StatusBadge task={task} />
          <A to={`/tasks/${task_id}`}>Task</A>
        </span>
        {!isEnded(task) && (
          <Button size="small" onClick={() => void cancel()}>
            Cancel
          </Button>
        )}
      </div>
      {!isEnded(task) && <Progress task={task} />}
      {task.status === 'FAILURE' && (
        <p className="form-error" role="alert">
          {task.fail_reason || 'The task failed.'} <span className="mono small">{task.fail_code}</span>
        </p>
      )}
      {task.status === 'SUCCESS' && <Output kind={kind} task_id={task_id} project={project} />}
    </>
  )
}

function StatusBadge({ task: { status } }: { task: Task }) {
  const tone = status === 'SUCCESS' ? 'ok' : status === 'FAILURE' ? 'danger' : 'info'
  return <Badge tone={tone}>{status.toLowerCase().replaceAll('_', ' ')}</Badge>
}

function Progress({ task }: { task: Task }) {
  const percent = progressOf(task)
  return (
    <div className="play-progress">
      <Meter label="Progress" value={percent} max={100} text={`${percent} %`} />
      <span className="small faint">{percent} %</span>
    </div>
  )
}

const Viewer = lazy(() => import('../../ui/viewer-3d.tsx').then(({ Viewer3d }) => ({ default: Viewer3d })))

function Output({ kind, task_id, project }: TaskViewProps) {
  const address = outputAddress(kind, task_id, { project, index: 0 })
  return (
    <>
      {kind === VIDEO ? (
        // biome-ignore lint/a11y/useMediaCaption: there are no captions of what a model made
        <video className="play-video" src={address} controls playsInline preload="metadata" aria-label="The video" />
      ) : (
        <Suspense fallback={<Loading lines={3} />}>
          <Viewer address={address} />
        </Suspense>
      )}
      <div>
        <a className="button" data-size="small" href={address} download>
          Download
        </a>
      </div>
    </>
  )
}
