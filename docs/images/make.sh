#!/bin/sh
# make.sh [URL]: has a running service make the pictures of README.md and docs/api.md from tests/photograph.jpg.
set -eu

url=${1:-http://localhost:8700}
cd "$(dirname "$0")"

# make PICTURE ROI PATH-AND-QUERY
make() {
	curl -fsS --data-binary @../../tests/photograph.jpg "$url/v1/$3&roi=$2&format=jpeg&quality=80&strip=1&variant=general" -o "$1.jpg"
}

# The strip of README.md; a box of one pixel changes nothing.
face=496,246,240,240
make strip-original $face 'filters/box?size=1'
make strip-gaussian $face 'filters/gaussian?sigma=4'
make strip-sobel $face 'filters/sobel?output=magnitude'
make strip-emboss $face 'filters/emboss?border=reflect101'
make strip-bilateral $face 'filters/bilateral?radius=8&sigma_range=0.2'

# The example of README.md.
make edges $face 'chain?filters=gaussian=sigma=1.4,sobel'

# One for each filter of docs/api.md, by the query that is shown there.
eye=532,257,96,96
make original $eye 'filters/box?size=1'
make gaussian $eye 'filters/gaussian?sigma=3'
make box $eye 'filters/box?size=9'
make convolve $eye 'filters/convolve?kernel=1,0,0;0,1,0;0,0,1'
make sobel $eye 'filters/sobel?output=magnitude'
make scharr $eye 'filters/scharr?output=x'
make prewitt $eye 'filters/prewitt?output=direction'
make laplacian $eye 'filters/laplacian?connectivity=8'
make dog $eye 'filters/dog?sigma1=1&sigma2=2'
make median $eye 'filters/median?radius=3'
make rank $eye 'filters/rank?radius=2&percentile=80'
make erode $eye 'filters/erode?size=5'
make dilate $eye 'filters/dilate?size=5'
make open $eye 'filters/open?size=7&shape=ellipse'
make close $eye 'filters/close?size=7&shape=ellipse'
make tophat $eye 'filters/tophat?size=9'
make blackhat $eye 'filters/blackhat?size=9'
make morphgradient $eye 'filters/morphgradient?size=3'
make highpass $eye 'filters/highpass?sigma=3'
make log $eye 'filters/log?sigma=1.4'
make motion $eye 'filters/motion?length=15&angle=30'
make gamma $eye 'filters/gamma?gamma=1.8'
make levels $eye 'filters/levels?black=0.1&white=0.7&gamma=1.2'
make linear $eye 'filters/linear?gain=1.5&bias=-0.1'
make invert $eye 'filters/invert?channels=color'
make lut $eye 'filters/lut?points=0,0;60,20;180,230;255,255'
make grayscale $eye 'filters/grayscale?weights=bt709'
make colormatrix $eye 'filters/colormatrix?matrix=0.393,0.769,0.189,0;0.349,0.686,0.168,0;0.272,0.534,0.131,0'
make pixelate $eye 'filters/pixelate?size=12'
make emboss $eye 'filters/emboss?border=reflect101'
make sharpen $eye 'filters/sharpen?amount=2'
make unsharp $eye 'filters/unsharp?sigma=2&amount=1.5&threshold=0.02'
make threshold $eye 'filters/threshold?method=mean&size=31&offset=0.02'
make equalize $eye 'filters/equalize?channels=luma'
make resize $eye 'filters/resize?width=36'
make canny $eye 'filters/canny?sigma=1.4&low=0.2&high=0.5'
make bilateral $eye 'filters/bilateral?radius=8&sigma_range=0.2'
make regions $eye 'filters/pixelate?size=12&regions=ellipse:546,271,68,68'
make chain $eye 'chain?filters=gaussian=sigma=1.4,sobel'
