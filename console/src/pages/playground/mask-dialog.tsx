/** Marks where an image changes: by pointer, by keyboard, or with a mask that is uploaded. */
import { useEffect, useRef, useState } from 'react'
import { notifyError } from '../../lib/toasts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Failed, Loading } from '../../ui/states.tsx'
import { Segments } from '../../ui/tabs.tsx'
import type { Attachment } from './chat-types.ts'
import { withFiles } from './files.ts'
import { MaskCanvas } from './mask-canvas.tsx'
import { maskOf, type Size, type Stroke, sizeOf } from './mask-drawing.ts'

type MaskDialogProps = { image: Attachment; onMask(mask: Attachment): void; onClose(): void }

/** Of the width of the image. */
const BRUSHES = { Small: 0.02, Medium: 0.05, Large: 0.12 }
type Brush = keyof typeof BRUSHES

export function MaskDialog({ image, onMask, onClose }: MaskDialogProps) {
  const [size, setSize] = useState<Size>()
  const [error, setError] = useState<Error>()
  const [strokes, setStrokes] = useState<Stroke[]>([])
  const [brush, setBrush] = useState<Brush>('Medium')
  useEffect(() => {
    sizeOf(image.data_url).then(setSize, setError)
  }, [image])
  const finish = (mask: Attachment) => {
    onMask(mask)
    onClose()
  }
  const onDraw = () => {
    if (!size) return
    const data_url = maskOf(size, strokes)
    finish({ name: 'mask.png', type: 'image/png', size: Math.floor((data_url.length * 3) / 4), data_url })
  }
  return (
    <Dialog
      open
      onClose={onClose}
      size="large"
      title="Mark what changes"
      text="The rest of the image stays as it is. By keyboard: the arrow keys move the brush, Space paints."
    >
      {error && <Failed error={error} />}
      {!size && !error && <Loading lines={6} />}
      {size && (
        <MaskCanvas
          image={image}
          size={size}
          radius={Math.max(1, BRUSHES[brush] * size.width)}
          strokes={strokes}
          onStroke={(stroke) => setStrokes((former) => [...former, stroke])}
        />
      )}
      <div className="row-between">
        <span className="row">
          <Segments
            label="Brush"
            value={brush}
            options={Object.keys(BRUSHES).map((value) => ({ value, label: value }))}
            onChange={(value) => setBrush(value as Brush)}
          />
          <Button size="small" disabled={strokes.length === 0} onClick={() => setStrokes(strokes.slice(0, -1))}>
            Undo
          </Button>
          <Button size="small" disabled={strokes.length === 0} onClick={() => setStrokes([])}>
            Clear
          </Button>
        </span>
        <span className="small faint" role="status">
          {strokes.length === 0 ? 'Nothing is marked.' : `${strokes.length} marked`}
        </span>
      </div>
      <DialogActs>
        {size && <UploadMask size={size} onMask={finish} />}
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" disabled={strokes.length === 0} onClick={onDraw}>
          Use this mask
        </Button>
      </DialogActs>
    </Dialog>
  )
}

function UploadMask({ size, onMask }: { size: Size; onMask(mask: Attachment): void }) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={picker}
        type="file"
        accept="image/png"
        hidden
        aria-label="Mask file"
        onChange={(event) => {
          readMask(event.target.files ?? [], size).then((mask) => mask && onMask(mask), notifyError)
          event.target.value = ''
        }}
      />
      <Button icon="up" onClick={() => picker.current?.click()}>
        Upload a mask
      </Button>
    </>
  )
}

async function readMask(files: Iterable<File>, { width, height }: Size): Promise<Attachment | undefined> {
  const [mask] = await withFiles([], [...files].slice(0, 1))
  if (!mask) return undefined
  const given = await sizeOf(mask.data_url)
  if (given.width !== width || given.height !== height)
    throw new Error(
      `The mask has ${given.width} × ${given.height} pixels; it must have those of the image: ${width} × ${height}.`,
    )
  return mask
}
