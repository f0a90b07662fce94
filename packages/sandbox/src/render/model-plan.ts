/** What 3D model is to be made, down to the triangle and the name of each file. */

/** Those that are really written here; FBX and USDZ are not. */
export const MODEL_FORMATS = ['glb', 'obj', 'stl'] as const
type ModelFormat = (typeof MODEL_FORMATS)[number]

export const POLYGONS = { minimum: 100, maximum: 100_000, default: 5_000 } as const

export type ModelPlan = {
  /** Chooses the shape and the colours. */
  seed: string
  text: string
  format: ModelFormat
  texture: boolean
  pbr: boolean
  /** No more than so many triangles, and hardly fewer. */
  polygons: number
  /** By which its files refer to each other: as they are called when they are downloaded. */
  name: string
  quick: boolean
}

/** The pieces of work that are told of: the shape, its pictures, the file, the view of it. */
export const MODEL_PIECES = 4

export type ModelFile = { name: string; content_type: string }
type Names = { main: ModelFile; material?: ModelFile; texture?: ModelFile; surface?: ModelFile; normal?: ModelFile }
export type ModelFiles = Names & { preview: ModelFile; all: ModelFile[] }

const TYPES: Record<ModelFormat, string> = { glb: 'model/gltf-binary', obj: 'model/obj', stl: 'model/stl' }

/** Its files in their order: the model, what it refers to, and a view of it at last. */
export function filesOfModel({ name, format, texture, pbr }: Omit<ModelPlan, 'seed' | 'text'>): ModelFiles {
  const all: ModelFile[] = []
  const next = (ending: string, content_type: string): ModelFile => {
    const file = { name: `${name}${all.length === 0 ? '' : `-${all.length}`}.${ending}`, content_type }
    all.push(file)
    return file
  }
  const names: Names = { main: next(format, TYPES[format]) }
  if (format === 'obj') names.material = next('mtl', 'model/mtl')
  if (format === 'obj' && texture) names.texture = next('png', 'image/png')
  if (format === 'obj' && texture && pbr) {
    names.surface = next('png', 'image/png')
    names.normal = next('png', 'image/png')
  }
  return { ...names, preview: next('png', 'image/png'), all }
}
