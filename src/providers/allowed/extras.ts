/**
 * What `metadata` of an image, a video or a 3D order may contain under the name of a kind: options that reach no other
 * model and nothing in the operator's account. Names are in camel case; snake case matches too. Sources: the option types of
 * the AI SDK's packages (alibaba 2.0.58, amazon-bedrock 5.0.101, black-forest-labs 2.0.41, deepinfra 3.0.57, fal 3.0.41, fireworks 3.0.62, google 4.0.121, google-vertex 5.0.141, luma 3.0.41, minimax 3.0.45, openai 4.0.118,
 * replicate 3.0.46, togetherai 3.0.54, xai 5.0.12), and the API references that the native kinds cite. Models of any
 * publisher run at some vendors (fal, replicate), with an open-ended set of fields: the list has those that most share.
 * Not on the list: names of models and adapters, callbacks, buckets, and ids of stored objects at the vendor.
 */
import { all, type ObjectShape, plain, type Shape } from '../../kit/allow-list.ts'

const position = plain('horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom')

/** For vendors that host models of any publisher. */
const SHARED = [
  ...['guidance', 'guidanceScale', 'cfgScale', 'numInferenceSteps', 'steps', 'strength', 'shift', 'goFast', 'fps'],
  ...['negativePrompt', 'promptOptimizer', 'promptUpsampling', 'enhancePrompt', 'enablePromptExpansion', 'loop'],
  ...['enableSafetyChecker', 'disableSafetyChecker', 'safetyTolerance', 'outputFormat', 'outputQuality', 'raw'],
  ...['syncMode', 'motionStrength', 'motionBucketId', 'condAug', 'decodingT', 'videoLength', 'sizingStrategy'],
  ...['framesPerSecond', 'resolution', 'acceleration', 'megapixels', 'background', 'quality', 'style', 'user'],
  ...['polygonType', 'textureSize', 'meshSimplify', 'topology', 'octreeResolution', 'quad', 'numFrames'],
]

const google: ObjectShape = {
  members: {
    ...all('value', 'personGeneration', 'negativePrompt', 'addWatermark', 'safetySetting', 'enhancePrompt'),
    ...all('value', 'generateAudio', 'resizeMode', 'compressionQuality', 'sampleImageSize', 'language'),
    referenceImages: plain('bytesBase64Encoded'),
    imageConfig: plain('aspectRatio', 'imageSize', 'personGeneration'),
    safetySettings: plain('category', 'threshold'),
  },
}
const bedrock = plain(
  ...['quality', 'negativeText', 'cfgScale', 'style', 'taskType', 'maskPrompt', 'outPaintingMode'],
  'similarityStrength',
)
const flux = plain(
  ...['imagePrompt', 'imagePromptStrength', 'steps', 'guidance', 'width', 'height', 'outputFormat'],
  ...['promptUpsampling', 'raw', 'safetyTolerance', 'resolution', 'aspectRatio', 'draft'],
)

const KINDS: Record<string, Shape> = {
  alibaba: plain('negativePrompt', 'audioUrl', 'promptExtend', 'shotType', 'watermark', 'audio', 'ratio'),
  'amazon-bedrock': bedrock,
  amazonBedrock: bedrock,
  ark: plain('watermark', 'resolution', 'ratio', 'duration', 'seed', 'cameraFixed', 'serviceTier', 'returnLastFrame'),
  azure: plain('quality', 'style', 'background', 'moderation', 'outputFormat', 'outputCompression', 'user'),
  openai: plain('quality', 'style', 'background', 'moderation', 'outputFormat', 'outputCompression', 'user'),
  'black-forest-labs': flux,
  blackForestLabs: flux,
  chatcompat: plain(...SHARED, 'moderation', 'inputFidelity', 'outputCompression', 'seed'),
  'chatcompat-video': plain(...SHARED, 'seed', 'aspectRatio', 'watermark'),
  deepinfra: plain('negativePrompt', 'numInferenceSteps', 'guidanceScale', 'guidance', 'quality', 'style', 'user'),
  fal: plain(...SHARED),
  fireworks: plain(
    ...['guidanceScale', 'numInferenceSteps', 'outputFormat', 'promptUpsampling', 'safetyTolerance', 'cfgScale'],
    'steps',
  ),
  google,
  'google-vertex': google,
  googleVertex: google,
  kling: {
    members: {
      ...all('value', 'cfgScale', 'mode', 'staticMask', 'externalTaskId'),
      cameraControl: { members: { type: 'value', config: position } },
      dynamicMasks: { members: { mask: 'value', trajectories: plain('x', 'y') } },
      watermarkInfo: plain('enabled'),
    },
  },
  luma: {
    members: {
      ...all('value', 'loop', 'referenceType'),
      concepts: plain('key'),
      imageRef: plain('url', 'weight'),
      styleRef: plain('url', 'weight'),
      modifyImageRef: plain('url', 'weight'),
    },
  },
  meshy: plain(
    ...['artStyle', 'topology', 'symmetryMode', 'shouldRemesh', 'savePreRemeshedModel', 'isATPose', 'poseMode'],
    ...['texturePrompt', 'textureImageUrl', 'hdTexture', 'removeLighting', 'moderation', 'targetFormats'],
    ...['decimationMode', 'imageEnhancement', 'originAt', 'autoSize', 'multiViewThumbnails', 'alphaThumbnail'],
  ),
  minimax: plain('resolution', 'ratio', 'referenceAudioUrls', 'aigcWatermark', 'promptOptimizer', 'fastPretreatment'),
  replicate: plain(...SHARED),
  runway: {
    members: {
      ...all('value', 'outputFormat', 'ratio', 'duration'),
      contentModeration: plain('publicFigureThreshold'),
    },
  },
  togetherai: plain('steps', 'guidance', 'negativePrompt', 'disableSafetyChecker'),
  tripo: plain(
    ...['imageSeed', 'modelSeed', 'textureSeed', 'textureQuality', 'geometryQuality', 'textureAlignment'],
    ...['autoSize', 'style', 'orientation', 'quad', 'compress', 'smartLowPoly', 'generateParts', 'exportUv'],
    'enableImageAutofix',
  ),
  xai: plain('mode', 'resolution', 'aspectRatio', 'outputFormat', 'syncMode', 'quality', 'user'),
}

export const EXTRAS: ObjectShape = { members: KINDS, only_objects: true }
