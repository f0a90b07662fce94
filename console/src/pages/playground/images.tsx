/** Makes images, and edits images that were made or chosen. */
import { useRef, useState } from 'react'
import { notifyError } from '../../lib/toasts.ts'
import { Button } from '../../ui/button.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { Files } from './chat-message.tsx'
import type { Attachment } from './chat-types.ts'
import { type FamilyProps, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { withFiles } from './files.ts'
import { useCall } from './use-call.ts'

const SIZES = ['', 'auto', '1024x1024', '1536x1024', '1024x1536', '512x512'].map((value) => ({
  value,
  label: value || 'default',
}))
const COUNTS = ['1', '2', '3', '4'].map((value) => ({ value, label: value }))

type Response = { data?: { b64_json?: string; revised_prompt?: string }[]; output_format?: string }

export function Images({ model, models, project, stored, onModel }: FamilyProps) {
  const [prompt, setPrompt] = useState(stored.join('\n'))
  const [size, setSize] = useState('')
  const [count, setCount] = useState('1')
  const [sources, setSources] = useState<Attachment[]>([])
  const { called, error, isRunning, run, stop } = useCall<Response>()
  const isEdit = sources.length > 0
  const submit = () => {
    const image = sources.map(({ data_url }) => data_url)
    const body = {
      model,
      prompt,
      n: Number(count),
      response_format: 'b64_json',
      ...(size !== '' && { size }),
      ...(isEdit && { image: image.length === 1 ? image[0] : image }),
    }
    void run({ path: isEdit ? '/v1/images/edits' : '/v1/images/generations', body, project })
  }
  return (
    <div className="play-order">
      <OrderForm
        act={isEdit ? 'Edit' : 'Generate'}
        isRunning={isRunning}
        problem={prompt.trim() === '' ? 'Type what the image shows.' : undefined}
        error={error}
        onSubmit={submit}
        onStop={stop}
      >
        <ModelChoice model={model} models={models} onModel={onModel} />
        <TextArea label="Prompt" rows={4} maxLength={32_000} value={prompt} onChange={setPrompt} />
        <div className="play-pair">
          <Select label="Size" value={size} options={SIZES} onChange={setSize} />
          <Select label="Images" value={count} options={COUNTS} onChange={setCount} />
        </div>
        <Sources label="Add an image to edit" files={sources} onChange={setSources} />
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="Images appear here.">
        <ul className="play-pictures">
          {picturesOf(called?.data).map((picture, index) => (
            <Picture
              key={picture.name}
              picture={picture}
              alt={`Image ${index + 1} of the model`}
              onEdit={() => setSources([picture])}
            />
          ))}
        </ul>
      </Result>
    </div>
  )
}

type SourcesProps = { label: string; files: Attachment[]; onChange(files: Attachment[]): void }

/** Images that an order begins from. */
export function Sources({ label, files, onChange }: SourcesProps) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <div className="stack-small">
      {files.length > 0 && (
        <Files files={files} onRemove={(index) => onChange(files.filter((_, at) => at !== index))} />
      )}
      <input
        ref={picker}
        type="file"
        accept="image/*"
        multiple
        hidden
        aria-label={label}
        onChange={(event) => {
          withFiles(files, event.target.files ?? []).then(onChange, notifyError)
          event.target.value = ''
        }}
      />
      <div>
        <Button size="small" icon="plus" onClick={() => picker.current?.click()}>
          {label}
        </Button>
      </div>
    </div>
  )
}

function Picture({ picture, alt, onEdit }: { picture: Attachment; alt: string; onEdit(): void }) {
  return (
    <li className="play-picture">
      <img src={picture.data_url} alt={alt} />
      <div className="row">
        <a className="button" data-size="small" href={picture.data_url} download={picture.name}>
          Download
        </a>
        <Button size="small" icon="edit" onClick={onEdit}>
          Edit this
        </Button>
      </div>
    </li>
  )
}

const TYPES: Record<string, string> = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' }

function picturesOf(response: Response | undefined): Attachment[] {
  const format = response?.output_format ?? 'png'
  const type = TYPES[format] ?? 'image/png'
  return (response?.data ?? []).flatMap(({ b64_json }, index) =>
    b64_json === undefined
      ? []
      : [
          {
            name: `image-${index + 1}.${format in TYPES ? format : 'png'}`,
            type,
            size: Math.floor((b64_json.length * 3) / 4),
            data_url: `data:${type};base64,${b64_json}`,
          },
        ],
  )
}
