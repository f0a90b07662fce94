/** The ending by which players, and people, know a file of a media type. */

const ENDINGS: Record<string, string> = {
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'video/x-matroska': 'mkv',
  'audio/flac': 'flac',
  'audio/mp4': 'm4a',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'image/avif': 'avif',
  'image/gif': 'gif',
  'image/heic': 'heic',
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'model/gltf-binary': 'glb',
  'model/obj': 'obj',
  'model/mtl': 'mtl',
  'model/stl': 'stl',
  'model/vnd.usdz+zip': 'usdz',
  'application/vnd.autodesk.fbx': 'fbx',
  'application/zip': 'zip',
}

/** Without its dot; undefined for a type that is not known. What follows the type (`; codecs=...`) is passed over. */
export const endingOf = (content_type: string): string | undefined =>
  ENDINGS[content_type.split(';')[0]?.trim().toLowerCase() ?? '']
