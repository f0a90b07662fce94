/** Parts shared by the playground's pages: the choice of a model, the form, and the cost and time of a call. */
import { type ReactNode, useState } from 'react'
import { useApiList } from '../../api/hooks.ts'
import { duration, money } from '../../lib/format.ts'
import { A, Button } from '../../ui/button.tsx'
import { FormError } from '../../ui/field.tsx'
import { CALLABLE, ModelField } from '../../ui/model-field.tsx'
import { Empty } from '../../ui/states.tsx'
import { CodeDialog } from './code-dialog.tsx'
import type { Called, PlaygroundCall } from './use-call.ts'

/** What every kind of model is given. */
export type FamilyProps = {
  model: string
  family: string
  project: string
  /** What the request log has stored of a request that is made again. */
  stored: string[]
  onModel(model: string): void
}

export const CHAT = 'chatcompat'

/** The first models of a family of endpoints that can be called. */
export function useFirstModels(family: string) {
  const query = { family, status: CALLABLE }
  return useApiList('GET /admin/v1/models', { query }, { limit: FIRST_MODELS })
}
/** One for each column of a chat. */
const FIRST_MODELS = 4

export const ModelChoice = ({ model, family, onModel }: Pick<FamilyProps, 'model' | 'family' | 'onModel'>) => (
  <ModelField isCallable value={model} family={family} onChange={onModel} />
)

type FormProps = {
  children: ReactNode
  /** The name of the act, such as `Generate`. */
  act: string
  /** What the act calls, which is shown as code too. */
  call: PlaygroundCall
  isRunning: boolean
  /** What is missing or wrong. */
  problem?: string | undefined
  error?: Error | undefined
  onSubmit(): void
  onStop(): void
}

/** The order on the left, what came of it on the right. */
export function OrderForm({ children, act, call, isRunning, problem, error, onSubmit, onStop }: FormProps) {
  const [isCodeShown, setCodeShown] = useState(false)
  return (
    <form
      className="form play-form"
      onSubmit={(event) => {
        event.preventDefault()
        if (problem === undefined && !isRunning) onSubmit()
      }}
    >
      {children}
      <FormError error={error} />
      <div className="row">
        {isRunning ? (
          <Button icon="stop" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" kind="primary" disabled={problem !== undefined}>
            {act}
          </Button>
        )}
        <Button icon="code" disabled={problem !== undefined} onClick={() => setCodeShown(true)}>
          Code
        </Button>
        {problem && <span className="small faint">{problem}</span>}
      </div>
      {isCodeShown && <CodeDialog call={call} onClose={() => setCodeShown(false)} />}
    </form>
  )
}

type ResultProps = { called: Called<unknown> | undefined; isRunning: boolean; empty: string; children?: ReactNode }

/** The result of a call with what it took, or what will be here. */
export function Result({ called, isRunning, empty, children }: ResultProps) {
  return (
    <section className="play-result" aria-label="Result" aria-busy={isRunning}>
      <span className="hidden-text" role="status">
        {isRunning ? 'Waiting for the model' : called ? 'The result is ready' : ''}
      </span>
      {called ? (
        <>
          {children}
          <p className="figures">
            <span>{duration(called.ms)}</span>
            {called.cost !== null && <span>{money(called.cost)}</span>}
            {called.request_id && (
              <A to="/requests" search={{ request_id: called.request_id }}>
                Request
              </A>
            )}
          </p>
        </>
      ) : (
        <Empty title={isRunning ? 'Waiting for the model…' : 'Nothing yet'}>{empty}</Empty>
      )}
    </section>
  )
}

/** The lines of a text that are not empty. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
