/** Embeds texts and shows how close each is to each other. */
import { type CSSProperties, useState } from 'react'
import { TextArea } from '../../ui/field.tsx'
import { type FamilyProps, linesOf, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { similarities } from './similarity.ts'
import { useCall } from './use-call.ts'

const MAX_TEXTS = 20
const EXAMPLE = 'A gate in a city wall\nThe door of a castle\nA recipe for apple pie'

type Response = { data: { index: number; embedding: number[] }[]; usage?: { prompt_tokens?: number } }

export function Embeddings({ model, family, project, stored, onModel }: FamilyProps) {
  const [typed, setTyped] = useState(stored.join('\n') || EXAMPLE)
  const [embedded, setEmbedded] = useState<string[]>([])
  const { called, error, isRunning, run, stop } = useCall<Response>()
  const texts = linesOf(typed)
  const problem =
    texts.length === 0
      ? 'Type a text in each line.'
      : texts.length > MAX_TEXTS
        ? `At most ${MAX_TEXTS} texts.`
        : undefined
  const call = { path: '/v1/embeddings', body: { model, input: texts } }
  const submit = async () => {
    if (await run({ ...call, project })) setEmbedded(texts)
  }
  return (
    <div className="play-order">
      <OrderForm
        act="Embed"
        call={call}
        isRunning={isRunning}
        problem={problem}
        error={error}
        onSubmit={() => void submit()}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextArea
          label="Texts"
          help="One in each line."
          rows={8}
          maxLength={100_000}
          value={typed}
          onChange={setTyped}
        />
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="The similarity of each text to each other appears here.">
        {called && <Matrix texts={embedded} vectors={called.data.data.map(({ embedding }) => embedding)} />}
      </Result>
    </div>
  )
}

function Matrix({ texts, vectors }: { texts: string[]; vectors: number[][] }) {
  const values = similarities(vectors)
  return (
    <>
      <p className="soft small">
        Cosine similarity of {vectors.length} vectors with {vectors[0]?.length ?? 0} numbers each: 1 is the same
        direction.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keyboard */}
      <section className="matrix-scroll" aria-label="Similarities" tabIndex={0}>
        <table className="matrix">
          <thead>
            <tr>
              <td />
              {texts.map((text, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: texts may be the same
                <th key={column} scope="col" title={text}>
                  {column + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {values.map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: texts may be the same
              <tr key={index}>
                <th scope="row" title={texts[index]}>
                  <span className="matrix-text">
                    {index + 1}. {texts[index]}
                  </span>
                </th>
                {row.map((value, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: as above
                  <td key={column} style={{ '--part': `${Math.round(Math.max(0, value) * 42)}%` } as CSSProperties}>
                    {value.toFixed(2)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  )
}
