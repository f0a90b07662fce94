/** The plan of a 3D model: everything that its files depend on, down to the triangles and the file names. */

/** The formats that the sandbox can write; FBX and USDZ are not among them. */
export const MODEL_FORMATS = ['glb', 'obj', 'stl'] as const
type ModelFormat = (typeof MODEL_FORMATS)[number]

export const POLYGONS = { minimum: 100, maximum: 100_000, default: 5_000 } as const

export type ModelPlan = {
  /** Determines the shape and the colours. */
  seed: string
  text: string
  format: ModelFormat
  texture: boolean
  pbr: boolean
  /** The maximum number of triangles; the model has hardly fewer. */
  polygons: number
  /** The base name of the files when they are downloaded; they refer to each other by it. */
  name: string
  quick: boolean
}

/** The steps that are reported as progress: the shape, its textures, the file, the preview. */
export const MODEL_STEPS = 4

export type ModelFile = { name: string; content_type: string }
type Names = { main: ModelFile; material?: ModelFile; texture?: ModelFile; surface?: ModelFile; normal?: ModelFile }
export type ModelFiles = Names & { preview: ModelFile; all: ModelFile[] }

const TYPES: Record<ModelFormat, string> = { glb: 'model/gltf-binary', obj: 'model/obj', stl: 'model/stl' }

/** The files of a model in their order: the model, the files that it refers to, and a preview last. */
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
