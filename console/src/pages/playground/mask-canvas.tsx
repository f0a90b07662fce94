/** An image with a canvas above it, on which strokes are drawn by pointer and by keyboard. */
import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react'
import type { Attachment } from './chat-types.ts'
import { drawStroke, type Point, type Size, type Stroke } from './mask-drawing.ts'

type CanvasProps = { image: Attachment; size: Size; radius: number; strokes: Stroke[]; onStroke(stroke: Stroke): void }

/** So many steps of an arrow key lead across the image; with Shift, a quarter of them. */
const STEPS = 40
const ARROWS: Record<string, Point> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
}
const MAX_POINTS = 10_000

export function MaskCanvas({ image, size, radius, strokes, onStroke }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const drawn = useRef<Point[]>(undefined)
  /** Where the brush of the keyboard is; undefined: the canvas has no focus. */
  const [brush, setBrush] = useState<Point>()
  useEffect(() => {
    const context = contextOf(canvas.current)
    if (!context) return
    context.clearRect(0, 0, size.width, size.height)
    for (const stroke of strokes) drawStroke(context, stroke)
    if (brush) drawBrush(context, { ...brush, radius })
  }, [size, strokes, brush, radius])

  const onMove = (event: PointerEvent<HTMLCanvasElement>) => {
    const points = drawn.current
    const context = contextOf(canvas.current)
    if (!points || !context || points.length >= MAX_POINTS) return
    points.push(pointOf(event, size))
    drawStroke(context, { radius, points: points.slice(-2) })
  }
  const onEnd = () => {
    if (drawn.current) onStroke({ radius, points: drawn.current })
    drawn.current = undefined
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const at = brush ?? { x: size.width / 2, y: size.height / 2 }
    const arrow = ARROWS[event.key]
    if (event.key === ' ') onStroke({ radius, points: [at] })
    else if (arrow) setBrush(moved(at, arrow, { size, isFar: event.shiftKey }))
    else return
    event.preventDefault()
  }
  return (
    <div className="mask">
      <img src={image.data_url} alt="" />
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it has keys of its own */}
      <canvas
        ref={canvas}
        width={size.width}
        height={size.height}
        role="application"
        aria-label="The image: the arrow keys move the brush, Space marks what changes"
        tabIndex={0}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          drawn.current = []
          setBrush(undefined)
          onMove(event)
        }}
        onPointerMove={onMove}
        onPointerUp={onEnd}
        onPointerCancel={onEnd}
        onKeyDown={onKeyDown}
        onBlur={() => setBrush(undefined)}
      />
    </div>
  )
}

function contextOf(canvas: HTMLCanvasElement | null): CanvasRenderingContext2D | undefined {
  const context = canvas?.getContext('2d')
  if (!canvas || !context) return undefined
  context.strokeStyle = getComputedStyle(canvas).color
  return context
}

/** In pixels of the image. */
function pointOf(event: PointerEvent<HTMLCanvasElement>, { width, height }: Size): Point {
  const frame = event.currentTarget.getBoundingClientRect()
  return {
    x: ((event.clientX - frame.left) / frame.width) * width,
    y: ((event.clientY - frame.top) / frame.height) * height,
  }
}

function moved(from: Point, by: Point, { size, isFar }: { size: Size; isFar: boolean }): Point {
  const step = Math.max(1, (size.width / STEPS) * (isFar ? 4 : 1))
  const within = (value: number, end: number) => Math.min(end, Math.max(0, value))
  return { x: within(from.x + by.x * step, size.width), y: within(from.y + by.y * step, size.height) }
}

function drawBrush(context: CanvasRenderingContext2D, { x, y, radius }: Point & { radius: number }): void {
  context.lineWidth = Math.max(2, radius / 10)
  context.beginPath()
  context.arc(x, y, radius, 0, 2 * Math.PI)
  context.stroke()
}
