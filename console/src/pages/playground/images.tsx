/** Makes images, and edits images that were made or chosen, the whole or what a mask leaves free. */
import { useRef, useState } from 'react'
import { notifyError } from '../../lib/toasts.ts'
import { Button } from '../../ui/button.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Select } from '../../ui/select.tsx'
import { Files } from './chat-message.tsx'
import type { Attachment } from './chat-types.ts'
import { useDrop } from './drop.ts'
import { type FamilyProps, ModelChoice, OrderForm, Result } from './family-parts.tsx'
import { withFiles } from './files.ts'
import { MaskDialog } from './mask-dialog.tsx'
import { useCall } from './use-call.ts'

const SIZES = ['', 'auto', '1024x1024', '1536x1024', '1024x1536', '512x512'].map((value) => ({
  value,
  label: value || 'default',
}))
const COUNTS = ['1', '2', '3', '4'].map((value) => ({ value, label: value }))

type Response = { data?: { b64_json?: string; revised_prompt?: string }[]; output_format?: string }

export function Images({ model, family, project, stored, onModel }: FamilyProps) {
  const [prompt, setPrompt] = useState(stored.join('\n'))
  const [size, setSize] = useState('')
  const [count, setCount] = useState('1')
  const [sources, setSources] = useState<Attachment[]>([])
  const [mask, setMask] = useState<Attachment>()
  const { called, error, isRunning, run, stop } = useCall<Response>()
  const isEdit = sources.length > 0
  const begin = (files: Attachment[]) => {
    // A mask belongs to the first image.
    if (files[0] !== sources[0]) setMask(undefined)
    setSources(files)
  }
  const image = sources.map(({ data_url }) => data_url)
  const body = {
    model,
    prompt,
    n: Number(count),
    response_format: 'b64_json',
    ...(size !== '' && { size }),
    ...(isEdit && { image: image.length === 1 ? image[0] : image }),
    ...(mask && { mask: mask.data_url }),
  }
  const call = { path: isEdit ? '/v1/images/edits' : '/v1/images/generations', body }
  return (
    <div className="play-order">
      <OrderForm
        act={isEdit ? 'Edit' : 'Generate'}
        call={call}
        isRunning={isRunning}
        problem={prompt.trim() === '' ? 'Type what the image shows.' : undefined}
        error={error}
        onSubmit={() => void run({ ...call, project })}
        onStop={stop}
      >
        <ModelChoice model={model} family={family} onModel={onModel} />
        <TextArea label="Prompt" rows={4} maxLength={32_000} value={prompt} onChange={setPrompt} />
        <div className="play-pair">
          <Select label="Size" value={size} options={SIZES} onChange={setSize} />
          <Select label="Images" value={count} options={COUNTS} onChange={setCount} />
        </div>
        <Sources label="Add an image to edit" files={sources} onChange={begin} />
        {sources[0] && <Mask image={sources[0]} mask={mask} onMask={setMask} />}
      </OrderForm>
      <Result called={called} isRunning={isRunning} empty="Images appear here.">
        <ul className="play-pictures">
          {picturesOf(called?.data).map((picture, index) => (
            <Picture
              key={picture.name}
              picture={picture}
              alt={`Image ${index + 1} of the model`}
              onEdit={() => begin([picture])}
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
  const add = (chosen: Iterable<File>) => void withFiles(files, chosen).then(onChange, notifyError)
  const drop = useDrop((dropped) => add(dropped.filter(({ type }) => type.startsWith('image/'))))
  return (
    <div className="play-sources stack-small" {...drop}>
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
          add(event.target.files ?? [])
          event.target.value = ''
        }}
      />
      <div className="row">
        <Button size="small" icon="plus" onClick={() => picker.current?.click()}>
          {label}
        </Button>
        <span className="small faint">or drop one here</span>
      </div>
    </div>
  )
}

type MaskProps = { image: Attachment; mask: Attachment | undefined; onMask(mask: Attachment | undefined): void }

/** Which part of the first image changes. */
function Mask({ image, mask, onMask }: MaskProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="stack-small">
      {mask && <Files files={[mask]} onRemove={() => onMask(undefined)} />}
      <div className="row">
        <Button size="small" icon="edit" onClick={() => setOpen(true)}>
          {mask ? 'Draw another mask' : 'Mark what changes'}
        </Button>
        {!mask && <span className="small faint">otherwise the whole image may</span>}
      </div>
      {isOpen && <MaskDialog image={image} onMask={onMask} onClose={() => setOpen(false)} />}
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
