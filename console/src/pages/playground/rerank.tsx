/** Sorts documents by how well they answer a query. */
import { useState } from 'react'
import { Meter } from '../../ui/display.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { type FamilyProps, linesOf, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { useCall } from './use-call.ts'

const MAX_DOCUMENTS = 100
const QUERY = 'What guards the gate of a castle?'
const EXAMPLE = 'A gatehouse guards the gate of a castle.\nApples are ripe in autumn.\nThe guard sleeps above the gate.'

type Response = { results: { index: number; relevance_score: number }[] }

export function Rerank({ model, family, project, stored: [asked = QUERY, ...given], onModel }: FamilyProps) {
  const [query, setQuery] = useState(asked)
  const [typed, setTyped] = useState(given.join('\n') || EXAMPLE)
  const [sorted, setSorted] = useState<string[]>([])
  const { called, error, isRunning, run, stop } = useCall<Response>()
  const documents = linesOf(typed)
  const call = { path: '/v1/rerank', body: { model, query, documents } }
  const submit = async () => {
    if (await run({ ...call, project })) setSorted(documents)
  }
  return (
    <div className="play-order">
      <OrderForm
        act="Rerank"
        call={call}
        isRunning={isRunning}
        problem={problemOf(query, documents)}
        error={error}
        onSubmit={() => void submit()}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextField label="Query" maxLength={10_000} value={query} onChange={setQuery} />
        <TextArea
          label="Documents"
          help="One in each line."
          rows={8}
          maxLength={200_000}
          value={typed}
          onChange={setTyped}
        />
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="The documents appear here, the best first.">
        <ol className="play-scores">
          {called?.data.results.map(({ index, relevance_score }) => (
            <li key={index} className="play-score">
              <span className="wrap">{sorted[index]}</span>
              <span className="play-score-value">
                <Meter label={`Score of document ${index + 1}`} value={Math.max(0, relevance_score)} max={1} />
                {relevance_score.toFixed(3)}
              </span>
            </li>
          ))}
        </ol>
      </Result>
    </div>
  )
}

function problemOf(query: string, documents: string[]): string | undefined {
  if (query.trim() === '') return 'Type a query.'
  if (documents.length === 0) return 'Type a document in each line.'
  return documents.length > MAX_DOCUMENTS ? `At most ${MAX_DOCUMENTS} documents.` : undefined
}
