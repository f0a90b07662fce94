/** Shows a 3D model that can be turned with the pointer or the arrow keys. three.js is loaded with this file only. */
import { useEffect, useRef, useState } from 'react'
import {
  AmbientLight,
  Box3,
  DirectionalLight,
  Mesh,
  type Object3D,
  PerspectiveCamera,
  Scene,
  Sphere,
  WebGLRenderer,
} from 'three'
import { OrbitControls } from 'three/addons/controls/OrbitControls.js'
import { GLTFLoader } from 'three/addons/loaders/GLTFLoader.js'
import { Failed, Loading } from './states.tsx'

type ViewerState = { isLoading: boolean; error?: Error }

/** A file that is larger is not read into the memory of the browser. */
const MAX_BYTES = 100_000_000

export function Viewer3d({ address }: { address: string }) {
  const place = useRef<HTMLElement>(null)
  const [{ isLoading, error }, setState] = useState<ViewerState>({ isLoading: true })
  useEffect(() => {
    const controller = new AbortController()
    const element = place.current
    if (!element) return
    let close = () => {}
    load(address, controller.signal)
      .then((model) => {
        if (controller.signal.aborted) return
        close = show(element, model)
        setState({ isLoading: false })
      })
      .catch((fault: unknown) => {
        if (controller.signal.aborted) return
        setState({ isLoading: false, error: fault instanceof Error ? fault : new Error(String(fault)) })
      })
    return () => {
      controller.abort()
      close()
    }
  }, [address])
  return (
    <>
      {isLoading && <Loading lines={3} />}
      {error ? (
        <Failed error={error} />
      ) : (
        <section
          ref={place}
          className="viewer"
          aria-label="The 3D model: turn it with the arrow keys"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys turn the model
          tabIndex={0}
        />
      )}
    </>
  )
}

async function load(address: string, signal: AbortSignal): Promise<Object3D> {
  const response = await fetch(address, { signal, credentials: 'same-origin' })
  if (!response.ok) throw new Error(`The file could not be read: status ${response.status}.`)
  if (Number(response.headers.get('content-length') ?? 0) > MAX_BYTES)
    throw new Error('The file is too large to be shown here. Download it.')
  const { scene } = await new GLTFLoader().parseAsync(await response.arrayBuffer(), '')
  return scene
}

const TURN = 0.15

/** Draws only when something changed. Returns what frees the memory of the graphics. */
function show(element: HTMLElement, model: Object3D): () => void {
  const renderer = new WebGLRenderer({ antialias: true, alpha: true })
  const scene = new Scene()
  const sun = new DirectionalLight(0xffffff, 2.5)
  sun.position.set(1, 2, 3)
  scene.add(model, new AmbientLight(0xffffff, 1.6), sun)
  const { center, radius } = new Box3().setFromObject(model).getBoundingSphere(new Sphere())
  model.position.sub(center)
  const size = radius || 1
  const camera = new PerspectiveCamera(45, 1, size / 100, size * 100)
  camera.position.set(size * 1.4, size * 0.9, size * 2.2)
  const controls = new OrbitControls(camera, renderer.domElement)
  const draw = () => renderer.render(scene, camera)
  const fit = () => {
    const { clientWidth, clientHeight } = element
    renderer.setSize(clientWidth, clientHeight, false)
    camera.aspect = clientWidth / Math.max(1, clientHeight)
    camera.updateProjectionMatrix()
    draw()
  }
  const onKey = (event: KeyboardEvent) => {
    const turn = { ArrowLeft: -TURN, ArrowRight: TURN }[event.key]
    if (turn === undefined) return
    event.preventDefault()
    model.rotation.y += turn
    draw()
  }
  const resized = new ResizeObserver(fit)
  element.append(renderer.domElement)
  element.addEventListener('keydown', onKey)
  controls.addEventListener('change', draw)
  resized.observe(element)
  controls.update()
  fit()
  return () => {
    resized.disconnect()
    element.removeEventListener('keydown', onKey)
    controls.dispose()
    model.traverse((part) => part instanceof Mesh && part.geometry.dispose())
    renderer.dispose()
    renderer.domElement.remove()
  }
}
