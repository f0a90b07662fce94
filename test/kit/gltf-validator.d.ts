/** Types that the tests need of the package `gltf-validator`, which has none. */
declare module 'gltf-validator' {
  type Report = {
    issues: { numErrors: number; numWarnings: number; messages: { code: string; message: string; pointer: string }[] }
    info: { totalTriangleCount: number; totalVertexCount: number; hasTextures: boolean; resources: unknown[] }
  }
  const validator: { validateBytes(bytes: Uint8Array): Promise<Report> }
  export default validator
}
