/** Draws a preview of a 3D model, triangle by triangle with a depth buffer, lit from the upper left. */
import type { Canvas } from '@napi-rs/canvas'
import type { CanvasTools } from './canvas.ts'
import type { Mesh } from './model-shape.ts'
import { WATERMARK } from './picture.ts'

const SIDE = 640
const QUICK_SIDE = 96
/** Drawn this many times larger and scaled down, for smooth edges. */
const SUPERSAMPLING = 2
/** The camera is a little to the right and above. */
const TURN = -0.2
const TILT = 0.28
const LIGHT = [-0.45, 0.6, 0.66] as const
const PLAIN = [190, 190, 196] as const

/** Without a texture the model is grey. */
export function drawView(
  tools: CanvasTools,
  mesh: Mesh,
  { texture, quick }: { texture: Canvas | undefined; quick: boolean },
): Canvas {
  const side = quick ? QUICK_SIDE : SIDE
  const large = tools.create(side * SUPERSAMPLING, side * SUPERSAMPLING)
  const context = large.getContext('2d')
  const image = context.createImageData(large.width, large.height)
  fill(image.data, large.width, { mesh: project(mesh, large.width), texture: texture && pixelsOf(texture) })
  context.putImageData(image, 0, 0)
  const canvas = tools.create(side, side)
  const into = canvas.getContext('2d')
  const ground = into.createRadialGradient(side / 2, side * 0.4, side * 0.1, side / 2, side / 2, side * 0.8)
  ground.addColorStop(0, '#5b6270')
  ground.addColorStop(1, '#1d2027')
  into.fillStyle = ground
  into.fillRect(0, 0, side, side)
  into.imageSmoothingQuality = 'high'
  into.drawImage(large, 0, 0, side, side)
  into.font = tools.fontOf(side / 34, 500)
  into.fillStyle = 'rgba(255, 255, 255, 0.85)'
  into.fillText(WATERMARK, side / 30, side - side / 30)
  return canvas
}

type Pixels = { data: Uint8ClampedArray | Uint8Array; width: number; height: number }

const pixelsOf = (canvas: Canvas): Pixels => ({
  data: canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data,
  width: canvas.width,
  height: canvas.height,
})

/** Screen coordinates: x and y in pixels, a larger z is nearer; and the brightness of each vertex. */
type Projected = { screen: Float32Array; bright: Float32Array; uvs: Float32Array; triangles: Uint32Array }

function project({ positions, normals, uvs, triangles }: Mesh, side: number): Projected {
  const turn = (at: number, from: Float32Array): [number, number, number] => {
    const [x = 0, y = 0, z = 0] = from.subarray(at, at + 3)
    const [across, near] = [x * Math.cos(TURN) + z * Math.sin(TURN), z * Math.cos(TURN) - x * Math.sin(TURN)]
    return [across, y * Math.cos(TILT) - near * Math.sin(TILT), near * Math.cos(TILT) + y * Math.sin(TILT)]
  }
  let reach = 0
  for (let at = 0; at < positions.length; at += 3)
    reach = Math.max(reach, Math.hypot(...positions.subarray(at, at + 3)))
  const scale = (side * 0.42) / reach
  const screen = new Float32Array(positions.length)
  const bright = new Float32Array(positions.length / 3)
  for (let at = 0; at < positions.length; at += 3) {
    const [x, y, z] = turn(at, positions)
    screen.set([side / 2 + x * scale, side / 2 - y * scale, z], at)
    const [a, b, c] = turn(at, normals)
    bright[at / 3] = 0.45 + 0.65 * Math.max(0, a * LIGHT[0] + b * LIGHT[1] + c * LIGHT[2])
  }
  return { screen, bright, uvs, triangles }
}

function fill(
  into: Uint8ClampedArray,
  side: number,
  { mesh, texture }: { mesh: Projected; texture: Pixels | undefined },
) {
  const depths = new Float32Array(side * side).fill(Number.NEGATIVE_INFINITY)
  for (let at = 0; at < mesh.triangles.length; at += 3) {
    drawTriangle({ into, side, depths, mesh, texture }, mesh.triangles.subarray(at, at + 3))
  }
}

type Drawing = {
  into: Uint8ClampedArray
  side: number
  depths: Float32Array
  mesh: Projected
  texture: Pixels | undefined
}

function drawTriangle({ into, side, depths, mesh, texture }: Drawing, corners: Uint32Array): void {
  const [a = 0, b = 0, c = 0] = corners
  const { screen, bright, uvs } = mesh
  const [ax = 0, ay = 0, az = 0] = screen.subarray(a * 3, a * 3 + 3)
  const [bx = 0, by = 0, bz = 0] = screen.subarray(b * 3, b * 3 + 3)
  const [cx = 0, cy = 0, cz = 0] = screen.subarray(c * 3, c * 3 + 3)
  const area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
  if (area >= 0) return // the back side: on the screen, y points down
  const mix = (values: Float32Array, size: number, offset: number, [p, q, r]: [number, number, number]) =>
    (values[a * size + offset] ?? 0) * p + (values[b * size + offset] ?? 0) * q + (values[c * size + offset] ?? 0) * r
  for (let y = Math.max(0, Math.floor(Math.min(ay, by, cy))); y <= Math.min(side - 1, Math.max(ay, by, cy)); y++) {
    for (let x = Math.max(0, Math.floor(Math.min(ax, bx, cx))); x <= Math.min(side - 1, Math.max(ax, bx, cx)); x++) {
      const q = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
      const r = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
      const p = 1 - q - r
      if (p < 0 || q < 0 || r < 0) continue
      const depth = az * p + bz * q + cz * r
      const pixel = y * side + x
      if (depth <= (depths[pixel] ?? 0)) continue
      depths[pixel] = depth
      const shares: [number, number, number] = [p, q, r]
      const light = mix(bright, 1, 0, shares)
      const [red, green, blue] = colourAt(texture, mix(uvs, 2, 0, shares), mix(uvs, 2, 1, shares))
      into.set([red * light, green * light, blue * light, 255], pixel * 4)
    }
  }
}

function colourAt(texture: Pixels | undefined, around: number, down: number): readonly [number, number, number] {
  if (!texture) return PLAIN
  const x = Math.min(texture.width - 1, Math.max(0, Math.floor(around * texture.width)))
  const y = Math.min(texture.height - 1, Math.max(0, Math.floor(down * texture.height)))
  const [red = 0, green = 0, blue = 0] = texture.data.subarray((y * texture.width + x) * 4)
  return [red, green, blue]
}
