/** Computes the shape of a 3D model: one closed surface around an axis, determined by a seed, with the requested number of triangles. */
import { createRandom } from '../random.ts'

export type Mesh = {
  /** Three numbers a vertex; y is up, and the front faces +z. */
  positions: Float32Array
  normals: Float32Array
  /** Two numbers a vertex: the texture coordinates, from the left and from the top. */
  uvs: Float32Array
  /** Four numbers a vertex: the direction of the texture's u axis, and 1. */
  tangents: Float32Array
  /** Three vertices a triangle, counter-clockwise seen from outside. */
  triangles: Uint32Array
}

type Point = [x: number, y: number, z: number]
/** `around` is 0 to 1, the front at a quarter; `down` is 0 at the top and 1 at the bottom. */
type Surface = (around: number, down: number) => Point

const FULL_TURN = 2 * Math.PI
const FRONT = 0.25
const SMALL_STEP = 1e-4

export function meshOf(seed: string, polygons: number): Mesh {
  const { segments, rings } = gridOf(polygons)
  const surface = surfaceOf(seed)
  const vertices: { around: number; down: number }[] = []
  const starts: number[] = []
  for (let ring = 0; ring <= rings; ring++) {
    starts.push(vertices.length)
    // At a pole each triangle has its own vertex, in the middle of its part of the texture.
    const isPole = ring === 0 || ring === rings
    const count = isPole ? segments : segments + 1
    for (let at = 0; at < count; at++)
      vertices.push({ around: (at + (isPole ? 0.5 : 0)) / segments, down: ring / rings })
  }
  return { ...pointsOf(vertices, surface), triangles: trianglesOf({ segments, rings, starts }) }
}

/** The rings and segments for at most so many triangles, and nearly as many; ideally twice as many segments as rings. */
export function gridOf(polygons: number): { segments: number; rings: number } {
  let best = { segments: 3, rings: 2, score: Number.NEGATIVE_INFINITY }
  const side = Math.sqrt(polygons)
  for (let segments = Math.max(3, Math.floor(side * 0.8)); segments <= Math.ceil(side * 1.3); segments++) {
    const rings = Math.max(2, Math.floor(polygons / (2 * segments)) + 1)
    const triangles = 2 * segments * (rings - 1)
    const score = triangles / polygons - 0.01 * Math.abs(Math.log(segments / rings / 2))
    if (triangles <= polygons && score > best.score) best = { segments, rings, score }
  }
  return { segments: best.segments, rings: best.rings }
}

/** A stretched, swollen, furrowed and twisted sphere, never so much that it would intersect itself. */
function surfaceOf(seed: string): Surface {
  const random = createRandom(`model:${seed}`)
  const height = 0.85 + 0.5 * random.next()
  const lobes = 2 + random.below(7)
  const depth = 0.04 + 0.16 * random.next()
  const twist = (random.next() - 0.5) * 3
  const swellings = [1, 2, 3].map((times) => ({
    times,
    amount: (0.24 * random.next()) / times,
    phase: FULL_TURN * random.next(),
  }))
  return (around, down) => {
    const angle = FULL_TURN * (around - FRONT)
    const waist = Math.sin(Math.PI * down)
    const profile = swellings.reduce(
      (sum, { times, amount, phase }) => sum + amount * Math.cos(times * Math.PI * down + phase),
      1,
    )
    const furrow = 1 + depth * waist ** 2 * Math.cos(lobes * (angle + twist * (down - 0.5)))
    const radius = waist * profile * furrow
    return [radius * Math.sin(angle), height * Math.cos(Math.PI * down), radius * Math.cos(angle)]
  }
}

function pointsOf(vertices: { around: number; down: number }[], surface: Surface): Omit<Mesh, 'triangles'> {
  const positions = new Float32Array(vertices.length * 3)
  const normals = new Float32Array(vertices.length * 3)
  const uvs = new Float32Array(vertices.length * 2)
  const tangents = new Float32Array(vertices.length * 4)
  vertices.forEach(({ around, down }, index) => {
    const { normal, tangent } = directionsAt(surface, around, down)
    positions.set(surface(around, down), index * 3)
    normals.set(normal, index * 3)
    uvs.set([around, down], index * 2)
    tangents.set([...tangent, 1], index * 4)
  })
  return { positions, normals, uvs, tangents }
}

function directionsAt(surface: Surface, around: number, down: number): { normal: Point; tangent: Point } {
  const angle = FULL_TURN * (around - FRONT)
  if (down === 0 || down === 1) {
    return { normal: [0, down === 0 ? 1 : -1, 0], tangent: [Math.cos(angle), 0, -Math.sin(angle)] }
  }
  const right = minus(surface(around + SMALL_STEP, down), surface(around - SMALL_STEP, down))
  const below = minus(surface(around, down + SMALL_STEP), surface(around, down - SMALL_STEP))
  const normal = unit(cross(below, right))
  const share = dot(right, normal)
  return {
    normal,
    tangent: unit([right[0] - share * normal[0], right[1] - share * normal[1], right[2] - share * normal[2]]),
  }
}

type Grid = { segments: number; rings: number; starts: number[] }

function trianglesOf({ segments, rings, starts }: Grid): Uint32Array {
  const triangles: number[] = []
  for (let ring = 0; ring < rings; ring++) {
    const [upper = 0, lower = 0] = [starts[ring], starts[ring + 1]]
    for (let at = 0; at < segments; at++) {
      if (ring === 0) triangles.push(upper + at, lower + at, lower + at + 1)
      else if (ring === rings - 1) triangles.push(upper + at, lower + at, upper + at + 1)
      else {
        triangles.push(upper + at, lower + at, upper + at + 1)
        triangles.push(upper + at + 1, lower + at, lower + at + 1)
      }
    }
  }
  return new Uint32Array(triangles)
}

const minus = (a: Point, b: Point): Point => [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
const dot = (a: Point, b: Point): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
const cross = (a: Point, b: Point): Point => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
]
function unit(a: Point): Point {
  const length = Math.hypot(...a)
  return [a[0] / length, a[1] / length, a[2] / length]
}
