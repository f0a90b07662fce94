/** Writes a 3D model as a file: binary glTF, Wavefront OBJ with its material, or STL, which has only triangles. */
import type { Accessor, Document, Texture } from '@gltf-transform/core'
import type { ModelFiles } from './model-plan.ts'
import type { Mesh } from './model-shape.ts'
import { WATERMARK } from './picture.ts'

/** The textures of the model as PNG files. */
export type ModelPictures = { texture?: Uint8Array; surface?: Uint8Array; normal?: Uint8Array }

export type Model = { mesh: Mesh; text: string; pictures: ModelPictures }

const GREY = 0.72
/** Of an untextured surface: neither a mirror nor chalk. */
const ROUGHNESS = 0.85

/** glTF 2.0. */
export async function writeGlb({ mesh, text, pictures }: Model): Promise<Uint8Array> {
  const { Document, WebIO } = await import('@gltf-transform/core')
  const document = new Document()
  const asset = document.getRoot().getAsset()
  asset.generator = WATERMARK
  asset.extras = { prompt: text }
  const buffer = document.createBuffer()
  const accessor = (type: Parameters<Accessor['setType']>[0], array: Float32Array | Uint16Array | Uint32Array) =>
    // A copy: the library's types demand memory that is not shared.
    document.createAccessor().setType(type).setArray(array.slice()).setBuffer(buffer)
  const count = mesh.positions.length / 3
  const primitive = document
    .createPrimitive()
    .setIndices(accessor('SCALAR', count <= 0xffff ? new Uint16Array(mesh.triangles) : mesh.triangles))
    .setAttribute('POSITION', accessor('VEC3', mesh.positions))
    .setAttribute('NORMAL', accessor('VEC3', mesh.normals))
    .setMaterial(materialOf(document, pictures))
  if (pictures.texture) primitive.setAttribute('TEXCOORD_0', accessor('VEC2', mesh.uvs))
  if (pictures.normal) primitive.setAttribute('TANGENT', accessor('VEC4', mesh.tangents))
  const node = document.createNode('model').setMesh(document.createMesh('model').addPrimitive(primitive))
  document.getRoot().setDefaultScene(document.createScene('model').addChild(node))
  return new WebIO().writeBinary(document)
}

function materialOf(document: Document, { texture, surface, normal }: ModelPictures) {
  const material = document.createMaterial('surface').setRoughnessFactor(ROUGHNESS).setMetallicFactor(0)
  const picture = (name: string, bytes: Uint8Array): Texture =>
    document.createTexture(name).setImage(new Uint8Array(bytes)).setMimeType('image/png')
  if (!texture) return material.setBaseColorFactor([GREY, GREY, GREY, 1])
  material.setBaseColorTexture(picture('colour', texture))
  if (normal) material.setNormalTexture(picture('normal', normal))
  if (!surface) return material
  const map = picture('surface', surface)
  return material.setMetallicRoughnessTexture(map).setOcclusionTexture(map).setMetallicFactor(1).setRoughnessFactor(1)
}

/** The model and its material, which refers to its textures by the names of the downloads. */
export function writeObj({ mesh, pictures }: Model, files: ModelFiles): { obj: string; mtl: string } {
  const lines = [`# ${WATERMARK}`, `mtllib ${files.material?.name}`, 'o model']
  rows(mesh.positions, 3, (row) => lines.push(`v ${row.map(formatNumber).join(' ')}`))
  // OBJ counts texture coordinates from the bottom.
  if (pictures.texture)
    rows(mesh.uvs, 2, ([x = 0, y = 0]) => lines.push(`vt ${formatNumber(x)} ${formatNumber(1 - y)}`))
  rows(mesh.normals, 3, (row) => lines.push(`vn ${row.map(formatNumber).join(' ')}`))
  lines.push('usemtl surface')
  const corner = (vertex: number) => (pictures.texture ? `${vertex}/${vertex}/${vertex}` : `${vertex}//${vertex}`)
  rows(mesh.triangles, 3, (row) => lines.push(`f ${row.map((vertex) => corner(vertex + 1)).join(' ')}`))
  return { obj: `${lines.join('\n')}\n`, mtl: writeMtl(files) }
}

function writeMtl({ texture, surface, normal }: ModelFiles): string {
  const colour = texture ? '1 1 1' : `${GREY} ${GREY} ${GREY}`
  const lines = [`# ${WATERMARK}`, 'newmtl surface', `Kd ${colour}`, 'Ks 0 0 0', 'illum 1', `Pr ${ROUGHNESS}`, 'Pm 0']
  if (texture) lines.push(`map_Kd ${texture.name}`)
  if (surface) lines.push(`map_Pr -imfchan g ${surface.name}`, `map_Pm -imfchan b ${surface.name}`)
  if (normal) lines.push(`norm ${normal.name}`)
  return `${lines.join('\n')}\n`
}

const formatNumber = (value: number): string => String(Number(value.toFixed(5)))

function rows(values: Float32Array | Uint32Array, size: number, work: (row: number[]) => void): void {
  for (let at = 0; at < values.length; at += size) work([...values.subarray(at, at + size)])
}

const STL_HEADER_BYTES = 80
const STL_TRIANGLE_BYTES = 50

/** Binary STL: a header, the number of triangles, and the normal and corners of each. It has no colours. */
export function writeStl({ mesh: { positions, triangles } }: Model): Uint8Array {
  const count = triangles.length / 3
  const bytes = new Uint8Array(STL_HEADER_BYTES + 4 + count * STL_TRIANGLE_BYTES)
  const view = new DataView(bytes.buffer)
  bytes.set(new TextEncoder().encode(WATERMARK).subarray(0, STL_HEADER_BYTES))
  view.setUint32(STL_HEADER_BYTES, count, true)
  const point = (vertex: number) => [...positions.subarray(vertex * 3, vertex * 3 + 3)]
  for (let at = 0; at < count; at++) {
    const corners = [...triangles.subarray(at * 3, at * 3 + 3)].map(point)
    const start = STL_HEADER_BYTES + 4 + at * STL_TRIANGLE_BYTES
    ;[normalOf(corners), ...corners].flat().forEach((value, place) => {
      view.setFloat32(start + place * 4, value, true)
    })
  }
  return bytes
}

function normalOf([a = [], b = [], c = []]: number[][]): number[] {
  const [px = 0, py = 0, pz = 0] = b.map((value, place) => value - (a[place] ?? 0))
  const [qx = 0, qy = 0, qz = 0] = c.map((value, place) => value - (a[place] ?? 0))
  const across = [py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx]
  const length = Math.hypot(...across) || 1
  return across.map((value) => value / length)
}
